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

// meterTurn counts the time that the box ran since it was counted last as the
// turn's. What that costs is in the turn's usage already.
func (n *step) meterTurn() { n.Turn.Box += n.elapsed() }

// meterRest counts the time that the box ran since it was counted last as no
// turn's, which still costs.
func (n *step) meterRest() {
	n.Spent.USD += float64(n.elapsed()) / 3600 * n.policy.BoxUSDPerHour
}

// elapsed is for how many seconds the box ran since it was counted last. From
// now on it is counted anew.
func (n *step) elapsed() (seconds int) {
	if !n.Metered.IsZero() {
		seconds = int(max(0, n.now.Sub(n.Metered)) / time.Second)
	}
	n.BoxSeconds += seconds
	n.Metered = n.now
	return seconds
}

// stopMeter: no box runs any more. What it ran until now is counted before.
func (n *step) stopMeter() { n.Metered = time.Time{} }

// stay is what is left to be booked of a turn that ends.
func (n *step) stay() *Stay {
	if n.Turn.Box == 0 {
		return nil
	}
	return &Stay{Payer: n.Turn.Payer(), Seconds: n.Turn.Box}
}
