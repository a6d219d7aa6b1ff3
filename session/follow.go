package session

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// broke: performing an effect failed. It is tried again, or given up, and
// then the turn hears of it.
func (n *step) broke(f Failed) {
	for i := range n.Pending {
		e := &n.Pending[i]
		if e.ID != f.Effect {
			continue
		}
		e.Attempts++
		if n.again(*e, f) {
			e.Due = n.now.Add(max(f.After, backoff(*e)))
			return
		}
		gone, _ := n.drop(e.ID)
		n.gaveUp(gone, f)
		if f.Gone {
			n.lose(gone)
		}
		return
	}
}

func (n *step) again(e Effect, f Failed) bool {
	if !f.Again || f.Lost && e.Kind != Prepare || n.now.Sub(e.Since) > giveUp {
		return false
	}
	if e.By != Worker {
		return true
	}
	if n.Turn != nil && n.Turn.Stopping != "" && (e.Kind == Prepare || e.Kind == Run) {
		return false
	}
	return e.Attempts < maxWorkerAttempts || f.Passing && n.now.Sub(e.Since) < patience(e.Kind)
}

// patience is how long a box waits for the code host. What the agent did is
// worth more of it than what it has not begun.
func patience(k EffectKind) time.Duration {
	switch k {
	case Prepare:
		return prepareWaits
	case Publish:
		return publishWaits
	case Tend:
		return giveUp
	default:
		return 0
	}
}

// gaveUp draws the consequences, so that no turn waits for what never comes.
func (n *step) gaveUp(e Effect, f Failed) {
	switch e.Kind {
	case Prepare, Run, Publish, Open:
		if n.Busy() {
			n.turnBroke(e, f)
		}
	case Admit:
		n.deny(*e.Request, f.Say)
	case MarkReady:
		if e.Request != nil {
			n.deny(*e.Request, f.Say)
		}
	case Report:
		n.unshown(*e.Thread)
	case Tend, Discard: // its own time-to-live ends the box, or whoever looks for strays
		n.giveUpBox()
	default: // lost words; the dead letter keeps them
	}
}

func (n *step) turnBroke(e Effect, f Failed) {
	t := n.Turn
	if f.Lost && e.Kind != Prepare {
		n.giveUpBox()
	}
	crash := Outcome{Ending: Crashed, Say: f.Say, Usage: t.Progress.Usage}
	switch {
	case t.Stopping != "" && e.Kind == Prepare:
		n.end(Outcome{Ending: Stopped, Say: n.stopped(), Usage: t.Progress.Usage})
	case t.Stopping != "" && e.Kind == Run:
		t.Outcome = &Outcome{Ending: Stopped, Say: n.stopped(), Usage: t.Progress.Usage}
		n.publish()
	case t.mayBegin(e.Kind) && f.Lost:
		t.Outcome = nil // what an earlier run brought is gone: all is said again
		n.prepare()
	case e.Kind == Run && !f.Lost:
		t.Outcome = &crash
		n.publish()
	case e.Kind == Publish || e.Kind == Open:
		t.Outcome = t.crashed(f.Say)
		n.finish()
	default:
		n.end(crash)
	}
}

// crashed is the outcome of a turn whose work could not be brought out of the
// box, or not all of it, after the agent's part was over.
func (t *Turn) crashed(say string) *Outcome {
	o := Outcome{Ending: Crashed, Say: say, Usage: t.Progress.Usage}
	if was := t.Outcome; was != nil {
		o.Usage, o.Answer, o.Commands = was.Usage, was.Answer, was.Commands
	}
	return &o
}

// mayBegin tells whether a turn whose box was lost in one of its steps can begin
// again: what the agent had not finished, and what it had and nobody has seen.
func (t *Turn) mayBegin(step EffectKind) bool {
	done := step == Publish && t.Stopping == "" && t.Outcome != nil && t.Outcome.succeeded()
	return (step == Run || done) && t.Prepares < maxPrepares
}

// follow derives what the clock and the view ask for.
func (n *step) follow() {
	n.warnNearLimits()
	n.report()
	n.settle()
	if n.over() && n.Turn != nil && len(n.Waiting) > 0 {
		n.begin(n.Waiting[0])
		n.Waiting = n.Waiting[1:]
		n.report()
	}
	if n.Turn == nil || n.Turn.Told {
		n.Today = nil // it is old when somebody asks again
	}
	n.rest()
}

// report keeps every thread's status comment up to date: at once when the
// phase changes, else not more often than allowed.
func (n *step) report() {
	if n.Turn == nil || n.Turn.Told {
		return
	}
	digest := ViewOf(n.State).Digest()
	for _, v := range n.Threads {
		pace := n.policy.Pace(v.Platform, n.now.Sub(n.Turn.Started))
		switch {
		case phaseOfDigest(v.Shown) != phaseOfDigest(digest):
			n.reportTo(v, digest, later(n.now, v.At.Add(pace.Least)))
		case v.Shown != digest:
			n.reportTo(v, digest, v.At.Add(pace.Every))
		case n.Busy() && pace.Silence > 0:
			n.reportTo(v, digest, v.At.Add(pace.Silence))
		}
	}
}

func (n *step) reportTo(v Voice, digest string, due time.Time) {
	for i := range n.Pending {
		p := &n.Pending[i]
		if p.Kind == Report && *p.Thread == v.Thread {
			if p.Attempts == 0 && due.Before(p.Due) {
				p.Due = due
			}
			return
		}
	}
	n.add(Effect{Kind: Report, By: v.Platform, Thread: &v.Thread, Due: due},
		"report", v.Key, strconv.Itoa(n.Turn.N), digest, v.Shown, strconv.FormatInt(v.At.UnixMilli(), 10))
}

func phaseOfDigest(d string) string {
	phase, _, _ := strings.Cut(d, ":")
	return phase
}

func (n *step) shown(t Thread, p Performed) {
	for i := range n.Threads {
		if v := &n.Threads[i]; v.Thread == t {
			v.Ref, v.Shown, v.At = cmp.Or(p.Ref, v.Ref), p.Shown, n.now
		}
	}
}

// unshown: a thread cannot be reported to. It is left alone until the next
// turn, so that its failure is not repeated for ever.
func (n *step) unshown(t Thread) {
	for i := range n.Threads {
		if v := &n.Threads[i]; v.Thread == t {
			v.Shown = ViewOf(n.State).Digest()
		}
	}
}

// settle drops, once a turn has ended and everybody was told, what only
// mattered for telling: an idle session is small. What a frozen owner may
// write over has to be told once more, so a sweep is waited for.
func (n *step) settle() {
	t := n.Turn
	if t == nil || t.Told || !n.over() || pendingKind(n.Pending, Sweep) {
		return
	}
	n.Turn = t.remains()
	for i := range n.Threads {
		n.Threads[i].Shown, n.Threads[i].At = "", time.Time{}
	}
	if n.Check != nil && n.Check.Conclusion != "" { // the platform finds it again
		n.Check = nil
	}
}

// remains is what is kept of a turn that everybody was told of.
func (t Turn) remains() *Turn {
	left := &Turn{N: t.N, Stage: t.Stage, Told: true, Changed: t.Changed, Took: t.Took, Resumed: t.Resumed}
	completed := true
	if o := t.Outcome; o != nil {
		left.Outcome = &Outcome{Ending: o.Ending, Usage: o.Usage, Question: o.Question, Limit: o.Limit}
		completed = o.Ending == Completed
	}
	if !completed { // a retry is likely, and an operator's has no other context
		left.Context = t.Context
	}
	left.Requests, left.Forgotten = t.keepForRetry(completed)
	return left
}

func (n *step) telling() bool {
	for _, e := range n.Pending {
		switch e.Kind {
		case Report, Reply, Begin, Answer, Check, Open, MarkReady:
			return true
		}
	}
	return false
}

// keepForRetry keeps what the turn was asked: all of it while a retry is
// likely, else only if it is short. Who retries it is who asks.
func (t Turn) keepForRetry(completed bool) (kept []Request, forgotten bool) {
	size := 0
	for i, r := range t.Requests {
		k := Request{Verb: r.Verb, Text: r.Text, Quote: r.Quote, Inline: r.Inline, Model: r.Model, Branch: r.Branch}
		if i > 0 {
			k.By.Login = r.By.Login
			size += keptRequest
		}
		kept = append(kept, k)
		size += len(k.Text) + len(k.Quote)
	}
	if completed && size > maxKept {
		return nil, true
	}
	return kept, false
}

// NextLook is when somebody must look at the state again without mail: the
// earliest effect that may be begun, or the box's timer. The zero time means
// never.
func NextLook(s State, p Policy) time.Time {
	_, next := schedule(s.Pending, nil, time.Time{})
	if due := s.boxDue(p); !due.IsZero() {
		next = earlier(next, due)
	}
	return next
}

// Busy: a turn is under way.
func (s State) Busy() bool { return s.Turn != nil && s.Turn.Stage != Ended }

func pendingKind(effects []Effect, k EffectKind) bool {
	return slices.ContainsFunc(effects, func(e Effect) bool { return e.Kind == k })
}

// schedule says which effects may begin now, and when the next one may.
// Effects of one performer go in order, one at a time, and taken names the
// performers that are at work already. One that waits for its time holds up
// those behind it, unless it is passable. Only another admission holds up an
// admission: it may be a stop, and what is said meanwhile can wait.
func schedule(effects []Effect, taken map[string]bool, now time.Time) (ready []Effect, next time.Time) {
	begun, held, queue := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, e := range effects {
		if taken[e.By] || begun[e.By] || held[e.By] && e.Kind != Admit || queue[e.By] && e.Kind == Admit {
			continue
		}
		if due := e.due(); due.After(now) {
			next = earlier(next, due)
			held[e.By] = held[e.By] || !e.passable()
			queue[e.By] = queue[e.By] || e.Kind == Admit
			continue
		}
		begun[e.By] = true
		ready = append(ready, e)
	}
	return ready, next
}

// passable: others may go before it while it waits. A report is about now,
// not about its place in the order.
func (e Effect) passable() bool {
	return e.Kind == Report || e.Kind == Sweep || e.Kind == Discard || e.Kind == Tend
}

func (e Effect) due() time.Time {
	if e.Due.IsZero() {
		return e.Since
	}
	return e.Due
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
