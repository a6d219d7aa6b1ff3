package lifecycle

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// dawn is when every test begins.
var dawn = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// machine is what the provider has: the truth about a box.
type machine struct {
	exists  bool
	running bool
	born    time.Time
	expires time.Time
	marker  int64
}

// costs is how long the provider takes, and how far ahead it sets the expiry of
// a box that is connected to, whatever it was.
type costs struct{ make, pause, resume, destroy, connect time.Duration }

// rig is a box, its provider and a worker in a time of their own. It holds them
// to what must never happen.
type rig struct {
	p     Policy
	costs costs
	now   time.Time
	box   Box
	vm    machine
	// works: the provider does what it is asked. Nil: always.
	works func() bool

	worked bool          // a turn began since the box was made or resumed
	begun  time.Time     // of the turn at work
	used   time.Duration // running
	busy   time.Duration // running with a turn at work
	made   int
	woken  int
	cut    int // turns whose box expired within their time
	flaws  []string
}

func (g *rig) flaw(format string, args ...any) {
	if len(g.flaws) < 10 {
		g.flaws = append(g.flaws, fmt.Sprintf("%s: %s", g.now.Format(time.DateTime), fmt.Sprintf(format, args...)))
	}
}

func (g *rig) report(t *testing.T) {
	t.Helper()
	for _, f := range g.flaws {
		t.Error(f)
	}
}

// ok: this call to the provider works.
func (g *rig) ok() bool { return g.works == nil || g.works() }

// stops is when the provider ends the machine.
func (g *rig) stops() time.Time { return sooner(g.vm.expires, after(g.vm.born, g.p.Cap)) }

// pass lets time go on until then.
func (g *rig) pass(until time.Time) {
	if !until.After(g.now) {
		return
	}
	if g.vm.running {
		lives := max(0, sooner(until, g.stops()).Sub(g.now))
		g.used += lives
		if g.box.State == Busy {
			g.busy += lives
		}
	}
	g.now = until
	g.lapse()
}

// lapse ends a machine whose time is over.
func (g *rig) lapse() {
	if !g.vm.running || g.now.Before(g.stops()) {
		return
	}
	within := g.stops().Before(g.begun.Add(g.p.TurnTimeout + g.p.Margin))
	if g.box.State == Busy && within {
		g.cut++
	}
	g.vm = machine{}
}

func (g *rig) apply(e Event) {
	next, err := g.box.Apply(e, g.now)
	if err != nil {
		g.flaw("%v", err)
	}
	g.box = next
}

func (g *rig) read() Reading { return Reading{Expires: g.vm.expires, At: g.now} }

// look asks the provider about the box, if there is one to ask about.
func (g *rig) look() {
	switch {
	case g.box.State == "" || g.box.State == Creating || g.box.State == Destroyed:
	case !g.vm.exists:
		g.apply(Gone)
	case g.vm.running:
		g.apply(SeenRunning)
	default:
		g.apply(SeenPaused)
	}
}

// tend looks, decides and acts until nothing is due, and returns when to look
// next.
func (g *rig) tend() time.Time {
	for range 20 {
		g.look()
		d, err := Decide(g.box, g.read(), g.p, g.now)
		if err != nil {
			g.flaw("a fresh reading: %v", err)
		}
		if d.Action == Nothing {
			if !d.At.IsZero() && !d.At.After(g.now) {
				g.flaw("%s: nothing until %s, which is over", g.box.State, d.At)
			}
			return d.At
		}
		if !g.perform(d) {
			return g.now.Add(g.p.Retry)
		}
	}
	g.flaw("%s: there is always something to do", g.box.State)
	return g.now.Add(g.p.Heartbeat)
}

// lookStale: nothing is decided on a reading that is too old, or from before
// the box was used.
func (g *rig) lookStale() {
	touched := later(g.box.Set, later(g.box.Attached, g.box.Since))
	for _, at := range [...]time.Time{{}, g.now.Add(-g.p.Fresh - 1), touched.Add(-1), g.now.Add(1)} {
		d, err := Decide(g.box, Reading{Expires: g.vm.expires, At: at}, g.p, g.now)
		if g.box.runs() && !errors.Is(err, ErrStale) || !g.box.runs() && err != nil {
			g.flaw("%s: decided %v, %v on a reading of %s", g.box.State, d, err, at)
		}
	}
}

// perform does what was decided, and tells whether it worked.
func (g *rig) perform(d Decision) bool {
	g.permit(d)
	switch d.Action {
	case Extend:
		if !g.ok() {
			return false
		}
		g.vm.expires = later(g.vm.expires, d.At)
		g.box = g.box.Extend(d.At, g.now)
	case Warn:
		g.box = g.box.Warn()
	case Pause:
		return g.pause()
	case Destroy:
		return g.destroy()
	}
	return true
}

// permit holds a decision to what must never be decided.
func (g *rig) permit(d Decision) {
	end := after(g.box.Born, g.p.Cap)
	over := !end.IsZero() && !g.now.Before(end)
	switch {
	case d.Action == Extend && !d.At.After(g.vm.expires):
		g.flaw("extend to %s what lives until %s", d.At, g.vm.expires)
	case d.Action == Extend && !end.IsZero() && d.At.After(end):
		g.flaw("extend to %s what ends at %s", d.At, end)
	case d.Action == Pause && g.box.State != Idle && g.box.State != Pausing, d.Action == Destroy && g.box.State == Busy && !over:
		g.flaw("%s a box that is %s: %s", d.Action, g.box.State, d.Reason)
	case d.Action == Pause && !g.worked:
		g.flaw("pause a box in which no turn was at work since it ran")
	}
}

// pause and destroy: the call is noted, it takes its time, and what fails is
// either told or not heard of, done or not.
func (g *rig) pause() bool {
	g.apply(PauseAsked)
	g.pass(g.now.Add(g.costs.pause))
	done, heard := g.ok(), g.ok()
	if done && g.vm.running {
		g.vm.running = false
	}
	switch {
	case !heard:
	case done && g.vm.exists:
		g.apply(PauseDone)
	default:
		g.apply(PauseFailed)
	}
	return done && heard
}

func (g *rig) destroy() bool {
	g.apply(DestroyAsked)
	g.pass(g.now.Add(g.costs.destroy))
	done, heard := g.ok(), g.ok()
	if done {
		g.vm = machine{}
	}
	switch {
	case !heard:
	case done:
		g.apply(DestroyDone)
	default:
		g.apply(DestroyFailed)
	}
	return done && heard
}

// enter brings a new turn into a box, as far as the provider works. It returns
// whether the turn has begun.
func (g *rig) enter() bool {
	e := Enter(g.box, g.p, g.now)
	switch e.Step {
	case Wait:
		if !e.At.After(g.now) {
			g.flaw("wait until %s, which is over", e.At)
		}
		return false
	case Rebuild:
		return g.rebuild()
	case Make:
		return g.make()
	case Resume:
		return g.resume()
	case Use:
		if !g.attach() {
			return false
		}
	}
	g.begin()
	return true
}

func (g *rig) rebuild() bool {
	if g.box.State == Busy {
		g.flaw("rebuild a box with a turn at work")
	}
	return g.destroy() && g.make()
}

func (g *rig) make() bool {
	if g.box.State != Creating {
		g.box = New("s", g.box.Generation+1, g.now)
	}
	if !g.ok() {
		return false
	}
	g.vm = machine{exists: true, running: true, born: g.now, expires: g.now.Add(g.p.TTL), marker: 0}
	g.made++
	g.pass(g.now.Add(g.costs.make))
	g.box.ID = fmt.Sprint("box", g.made)
	g.apply(Made)
	g.worked = false
	return g.attach() && g.begin()
}

func (g *rig) resume() bool {
	g.apply(ResumeAsked)
	if !g.vm.exists {
		g.apply(Gone)
		return false
	}
	if !g.ok() {
		g.apply(ResumeFailed)
		return false
	}
	if !g.vm.running {
		g.vm.running, g.vm.born, g.vm.expires = true, g.now, g.now.Add(g.costs.connect)
	}
	g.worked = false
	g.woken++
	g.pass(g.now.Add(g.costs.resume))
	woken := g.box.Woken(g.vm.marker)
	g.apply(woken)
	if woken == Behind {
		return g.rebuild()
	}
	return g.attach() && g.begin()
}

// attach: an answer to a probe. The provider sets the expiry as it likes.
func (g *rig) attach() bool {
	if !g.vm.exists || !g.vm.running {
		g.look()
		return false
	}
	if !g.ok() {
		return false
	}
	g.vm.expires = g.now.Add(g.costs.connect)
	g.box = g.box.Attach(g.now)
	return true
}

func (g *rig) begin() bool {
	if g.box.State != Busy {
		g.begun = g.now
	}
	g.apply(TurnBegun)
	g.worked = true
	return true
}

// end ends the turn and leaves the marker.
func (g *rig) end() {
	g.apply(TurnEnded)
	if g.ok() {
		g.vm.marker = g.box.Marker
	}
}
