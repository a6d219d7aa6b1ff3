package session

import "time"

// Trail is by what a request is followed from its webhook to the last effect:
// in logs, metrics and traces. Nothing is decided by it.
type Trail struct {
	// Delivery is the platform's id of the delivery that brought the request.
	Delivery string `json:"d,omitempty"`
	// Trace is the span that took it in, as W3C's traceparent; empty: nobody
	// traces.
	Trace string `json:"t,omitempty"`
	// Asked is since when somebody waits for a first answer, by the store's
	// clock; zero once there was one.
	Asked time.Time `json:"a,omitzero"`
}

// withTrail is an event whose request can be followed. One that another session
// forwarded has its trail already, and was answered there or is waited for
// since then.
func withTrail(e Event) Event {
	if e.Request == nil || e.Request.Trail.Delivery != "" {
		return e
	}
	r := *e.Request // the store's
	r.Trail.Delivery = e.Delivery
	if e.Kind == Asked {
		r.Trail.Asked = e.At
	}
	e.Request = &r
	return e
}

// trailOf is the trail of what an event goes back to: its request, or that of
// the effect that it is the result of, or else the turn's.
func (s State) trailOf(e Event) Trail {
	switch {
	case e.Request != nil:
		return e.Request.Trail
	case e.Effect != nil: // replayed: who asked once does not wait any more
		return e.Effect.Trail.answered()
	}
	if p, ok := s.pending(e.effectID()); ok {
		return p.Trail
	}
	return s.turnTrail()
}

// answered is the trail of a request that nobody waits for any more.
func (t Trail) answered() Trail {
	t.Asked = time.Time{}
	return t
}

// effectID is the id of the effect that an event is the result of, or empty.
func (e Event) effectID() string {
	switch {
	case e.Performed != nil:
		return e.Performed.Effect
	case e.Failed != nil:
		return e.Failed.Effect
	}
	return ""
}

// pending is the effect of that id that is not yet known to be done.
func (s State) pending(id string) (Effect, bool) {
	for _, p := range s.Pending {
		if p.ID == id {
			return p, true
		}
	}
	return Effect{}, false
}

// turnTrail is that of the request that began the turn.
func (s State) turnTrail() Trail {
	if s.Turn == nil || len(s.Turn.Requests) == 0 {
		return Trail{}
	}
	return s.Turn.Requests[0].Trail
}

// inheritTrail gives a turn that has none, as one that is retried, the trail of
// what it goes back to. The state is fresh from Step, so what is written to is its own.
func (s State) inheritTrail(cause Trail) {
	if s.Turn != nil && len(s.Turn.Requests) > 0 && s.Busy() && s.Turn.Requests[0].Trail == (Trail{}) {
		s.Turn.Requests[0].Trail = cause
	}
}

// trailFor is the trail of an effect that was just decided.
func (s State) trailFor(e Effect, cause Trail) Trail {
	if e.Request != nil && e.Request.Trail != (Trail{}) {
		return e.Request.Trail
	}
	if turn := s.turnTrail(); e.ofTurn() && turn != (Trail{}) {
		return turn
	}
	return cause
}

// ofTurn: it is about the session's turn, and not about one request.
func (e Effect) ofTurn() bool {
	switch e.Kind {
	case Begin, Answer, Report, Prepare, Run, Publish, Open, Check, Close:
		return true
	}
	return false
}

// visible: whoever asked sees it where they asked.
func (e Effect) visible() bool {
	switch e.Kind {
	case Acknowledge, Say, Ask, Begin, Answer, Reply, Report:
		return true
	}
	return false
}

// markAnswered notes that a request had its first answer. What running effects hold
// on to is not written to.
func (s State) markAnswered(t Trail) {
	settle := func(have *Trail) {
		if *have == t {
			*have = have.answered()
		}
	}
	for i := range s.Pending {
		p := &s.Pending[i]
		settle(&p.Trail)
		if p.Request != nil && p.Request.Trail == t {
			r := *p.Request
			settle(&r.Trail)
			p.Request = &r
		}
	}
	for i := range s.Waiting {
		settle(&s.Waiting[i].Trail)
	}
	if s.Asking != nil {
		settle(&s.Asking.Request.Trail)
	}
	if s.Turn != nil {
		for i := range s.Turn.Requests {
			settle(&s.Turn.Requests[i].Trail)
		}
	}
}
