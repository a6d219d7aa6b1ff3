package session

import "time"

// Stay is how long a box ran for a turn, to be booked when that is over.
type Stay struct {
	Payer   string `json:"p,omitempty"`
	Seconds int    `json:"s"`
}

// Cost is what something took, in money and box time.
type Cost struct {
	USD float64       `json:"$,omitempty"`
	Box time.Duration `json:"b,omitempty"`
}

// BoxTime is how long a box ran for the turn by now.
func (s State) BoxTime(now time.Time) time.Duration {
	if s.Turn == nil {
		return 0
	}
	total := time.Duration(s.Turn.Box) * time.Second
	if s.working() {
		total += max(0, now.Sub(s.Metered))
	}
	return total
}

// working: a box runs, and for the turn.
func (s State) working() bool {
	return !s.Metered.IsZero() && s.Busy() && s.Turn.Stage != Preparing
}

// meter counts the time that the box ran since it was counted last: for the turn,
// or for nobody's, which still costs. From now on it runs, or does not.
func (n *step) meter(forTurn, runs bool) {
	if !n.Metered.IsZero() {
		seconds := int(max(0, n.now.Sub(n.Metered)) / time.Second)
		n.BoxSeconds += seconds
		if forTurn {
			n.Turn.Box += seconds
		} else { // a turn's usage has it already
			n.Spent.USD += float64(seconds) / 3600 * n.policy.BoxUSDPerHour
		}
	}
	n.Metered = time.Time{}
	if runs {
		n.Metered = n.now
	}
}

// stay is what is left to be booked of a turn that ends.
func (n *step) stay() *Stay {
	if n.Turn.Box == 0 {
		return nil
	}
	return &Stay{Payer: n.Turn.Payer(), Seconds: n.Turn.Box}
}
