package lifecycle

import (
	"math/rand/v2"
	"testing"
	"time"

	"ship/sandbox"
)

// driver lets random things happen to a rig.
type driver struct {
	rig
	rng   *rand.Rand
	turns int
	ended int
	raw   int // events that were told out of the blue, and taken
	// missed is the record whose box was not listed, and since when.
	missed struct {
		box Box
		at  time.Time
	}
	lost int // boxes that were told to be lost because they were not listed
	seen map[State]int
}

func newDriver(p Policy, seed uint64) *driver {
	d := &driver{rng: rand.New(rand.NewPCG(seed, 1)), seen: map[State]int{}}
	d.p, d.now = p, dawn
	d.costs = costs{make: 20 * time.Second, pause: 8 * time.Second, resume: 3 * time.Second, destroy: time.Second, connect: 3 * time.Minute}
	d.works = func() bool { return d.rng.IntN(12) > 0 }
	return d
}

// step lets one thing happen.
func (d *driver) step() {
	d.seen[d.box.State]++
	switch n := d.rng.IntN(100); {
	case n < 30:
		d.pass(d.now.Add(time.Duration(d.rng.Int64N(int64(d.span())))))
	case n < 60:
		d.tend()
		if d.rng.IntN(8) == 0 {
			d.lookStale()
		}
	case n < 72:
		d.turn()
	case n < 82:
		if d.box.State == Busy {
			d.end()
			d.ended++
		}
	case n < 90:
		d.box = d.box.Touch([]Activity{Message, ToolCall, FileChange, Probe, Poll, Preview, StatusLook}[d.rng.IntN(7)], d.now)
	case n < 92:
		d.meddle()
	case n < 95:
		d.reconcile()
	default:
		d.outOfTheBlue()
	}
}

// span is how long nothing happens: mostly a while, now and then for as long
// as all of ship may be gone.
func (d *driver) span() time.Duration {
	switch n := d.rng.IntN(100); {
	case n < 80:
		return time.Minute
	case n < 98:
		return 10 * time.Minute
	}
	return 3 * time.Hour
}

func (d *driver) turn() {
	if d.box.State != Busy && d.enter() {
		d.turns++
	}
}

// meddle is what others do to a box.
func (d *driver) meddle() {
	if !d.vm.exists {
		return
	}
	switch d.rng.IntN(4) {
	case 0:
		d.vm = machine{}
	case 1:
		d.vm.running = false
	case 2:
		if !d.vm.running {
			d.vm.running, d.vm.born, d.vm.expires = true, d.now, d.now.Add(d.costs.connect)
		}
	case 3:
		d.vm.marker--
	}
}

// soon is a grace time that others are likely to keep.
const soon = 20 * time.Second

// reconcile goes two rounds, as whoever missed a box looks again soon.
func (d *driver) reconcile() {
	d.round()
	d.pass(d.now.Add(time.Duration(d.rng.Int64N(int64(time.Minute)))))
	if d.rng.IntN(3) == 0 {
		d.meddle()
	}
	d.round()
}

// round holds the provider's list against the record. A box is lost that was
// missing a grace time ago already, if nothing happened to it since.
func (d *driver) round() {
	l, r := Listing{At: d.now}, Record{Box: d.box}
	if d.box.State == Busy {
		r.Lease = 1
	}
	if d.vm.exists {
		l.Boxes = []sandbox.Info{{ID: d.box.ID, Key: "s", Created: d.vm.born}}
	}
	missed := d.missed
	d.missed.box = Box{}
	for _, f := range Reconcile(l, []Record{r}, soon) {
		switch {
		case f.Verdict != Lose || d.box.State == Destroying || d.box.State == Creating:
		case d.vm.exists:
			d.flaw("a box that is listed is missed: %+v", f)
		case missed.box.ID != f.ID || missed.box.State != d.box.State || !missed.box.Since.Equal(d.box.Since):
			d.missed.box, d.missed.at = d.box, d.now
		case d.now.Sub(missed.at) < soon:
			d.missed = missed
		default:
			d.apply(f.Event)
			d.lost++
		}
	}
}

// outOfTheBlue tells an event that has nothing to do with what happened, late
// or twice, and forgets what came of it: whatever is refused changes nothing.
func (d *driver) outOfTheBlue() {
	events := Events()
	e := events[d.rng.IntN(len(events))]
	before := d.box
	b, err := before.Apply(e, d.now.Add(-time.Duration(d.rng.Int64N(int64(time.Hour)))))
	switch {
	case err != nil && b != before:
		d.flaw("%s was refused, and changed the box to %+v", e, b)
	case err == nil && (b.Since.Before(before.Since) || b.Active.Before(before.Active)):
		d.flaw("%s turned time back", e)
	case err == nil:
		d.raw++
	}
}

// runOut lets time go on for a copy of the box with nobody but who tends it, and
// returns how long it takes to be destroyed.
func (d *driver) runOut() time.Duration {
	g, crashed := d.rig, d.rng.IntN(2) == 0
	g.works = nil
	for range 3000 {
		next := g.tend()
		if g.box.State == Destroyed || g.box.State == "" {
			break
		}
		g.pass(sooner(next, g.stopsIfRunning()))
		if g.box.State == Busy && !crashed && g.now.Sub(g.begun) >= g.p.TurnTimeout {
			g.end()
		}
	}
	if g.box.State != Destroyed && g.box.State != "" {
		g.flaw("a box that was %s is %s in the end", d.box.State, g.box.State)
	}
	d.flaws = append(d.flaws, g.flaws...)
	return g.now.Sub(d.now)
}

func (g *rig) stopsIfRunning() time.Time {
	if g.vm.running {
		return g.stops()
	}
	return time.Time{}
}

// hobby is a policy for a provider that lets a box run for an hour at most.
func hobby() Policy {
	p := Default()
	p.Cap, p.TurnTimeout, p.Margin, p.Warn = time.Hour, 40*time.Minute, 10*time.Minute, 5*time.Minute
	return p
}

// TestRandom drives the machine with random events for a million steps. What
// must never happen is looked for in each (see rig), and every so often, what
// there is must come to its end by itself.
func TestRandom(t *testing.T) {
	t.Parallel()
	never, day := Default(), Default()
	never.IdlePause = 0
	day.Cap, day.Margin = 24*time.Hour, 4*time.Minute
	for name, p := range map[string]Policy{"usual": Default(), "hour": hobby(), "day": day, "never paused": never} {
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			drive(t, newDriver(p, seed))
		})
	}
}

func drive(t *testing.T, d *driver) {
	t.Helper()
	const steps = 250_000
	limit := d.p.TurnTimeout + d.p.Margin + d.p.IdleDestroy + d.p.TTL
	var longest time.Duration
	for i := range steps {
		d.step()
		if i%1000 == 0 {
			longest = max(longest, d.runOut())
		}
		if len(d.flaws) > 0 {
			break
		}
	}
	d.report(t)
	if longest > limit {
		t.Errorf("a box that nobody uses lives for %s, more than %s", longest, limit)
	}
	for _, s := range States() {
		if d.seen[s] == 0 && (d.p.IdlePause > 0 || s != Pausing) {
			t.Errorf("no box was ever %s", s)
		}
	}
	if d.lost == 0 {
		t.Error("no box was ever missed")
	}
	t.Logf("%d turns, %d ended; %d boxes made, %d woken, %d missed; left alone, a box ends within %s", d.turns, d.ended, d.made, d.woken, d.lost, longest)
}
