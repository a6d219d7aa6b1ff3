package lifecycle

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// workload is the model of who works when. It is spelled out in
// docs/lifecycle.md, since the numbers there are worth what it is worth.
type workload struct {
	users              int
	shortest, longest  time.Duration // of a turn, all lengths alike
	queued, soon, last int           // in a hundred turns: followed at once, within minutes, by nothing
}

// usual: the rest of the hundred is followed after hours.
func usual() workload {
	return workload{users: 50, shortest: 2 * time.Minute, longest: 40 * time.Minute, queued: 15, soon: 35, last: 30}
}

// short is the same people with small requests.
func short() workload {
	w := usual()
	w.longest = 15 * time.Minute
	return w
}

// piece is one session: when it is asked for, when its user goes home, and what
// it is asked for.
type piece struct {
	asked, home time.Time
	rng         *rand.Rand
	w           workload
}

// pieces are what all users ask for in a day: each has three to six pieces of
// work, most of them within half an hour of two moments, the others whenever.
func (w workload) pieces(seed uint64) (all []piece) {
	rng := rand.New(rand.NewPCG(seed, 2))
	within := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	for range w.users {
		start := dawn.Add(8*time.Hour + within(2*time.Hour))
		home := start.Add(7*time.Hour + within(2*time.Hour))
		bursts := []time.Time{start.Add(within(time.Hour)), start.Add(4*time.Hour + within(time.Hour))}
		for range 3 + rng.IntN(4) {
			asked := start.Add(within(7 * time.Hour))
			if rng.IntN(3) > 0 {
				asked = bursts[rng.IntN(2)].Add(within(30 * time.Minute))
			}
			all = append(all, piece{asked: asked, home: home, w: w, rng: rand.New(rand.NewPCG(seed, rng.Uint64()))})
		}
	}
	return all
}

func (p piece) turn() time.Duration {
	return p.w.shortest + time.Duration(p.rng.Int64N(int64(p.w.longest-p.w.shortest)))
}

// next is when the turn that has just ended is followed by another; zero: never.
func (p piece) next(now time.Time) time.Time {
	gap := time.Hour + time.Duration(p.rng.Int64N(int64(3*time.Hour)))
	switch n := p.rng.IntN(100); {
	case n < p.w.last:
		return time.Time{}
	case n < p.w.last+p.w.queued:
		gap = 0
	case n < p.w.last+p.w.queued+p.w.soon:
		gap = time.Minute + time.Duration(p.rng.ExpFloat64()*float64(8*time.Minute))
	}
	if at := now.Add(gap); at.Before(p.home) {
		return at
	}
	return time.Time{}
}

// tally is what a day came to.
type tally struct {
	used, busy     time.Duration
	pieces, turns  int
	woken, rebuilt int // turns that began in a woken box, and in a new one although there was one before
	cut, lived     int // turns that a timeout cut, boxes that live on
	idlest         time.Duration
	flaws          []string
}

// ratio is box hours per busy hour.
func (y tally) ratio() float64 { return y.used.Hours() / y.busy.Hours() }

// of is how many of a hundred turns.
func (y tally) of(n int) float64 { return 100 * float64(n) / float64(y.turns) }

// day runs a day of a workload for each seed.
func day(p Policy, w workload, seeds int) (sum tally) {
	for seed := range seeds {
		for _, pc := range w.pieces(uint64(seed)) {
			pc.live(p, &sum)
		}
	}
	return sum
}

// live runs one session until its box is destroyed.
func (p piece) live(policy Policy, sum *tally) {
	g := rig{p: policy, now: p.asked}
	g.costs = costs{make: 20 * time.Second, pause: 8 * time.Second, resume: 3 * time.Second, destroy: time.Second, connect: 5 * time.Minute}
	asked, ends, look := p.asked, time.Time{}, time.Time{}
	for range 10_000 {
		switch at := sooner(asked, sooner(ends, look)); {
		case at.IsZero():
			p.count(&g, sum)
			return
		case at.Equal(ends):
			g.pass(at)
			g.end()
			ends, asked = time.Time{}, p.next(g.now)
			look = g.now
		case at.Equal(asked):
			g.pass(at)
			if asked = p.enter(&g); asked.IsZero() {
				sum.turns++
				ends = g.now.Add(p.turn())
			}
			look = g.now
		default: // who looks is some seconds late
			g.pass(at.Add(time.Duration(p.rng.Int64N(int64(5 * time.Second)))))
			rested := g.rests()
			look = g.tend()
			if g.box.State != Idle {
				sum.idlest = max(sum.idlest, rested)
			}
		}
	}
	g.flaw("a box is looked at for ever")
	p.count(&g, sum)
}

// enter returns when to try again; zero: the turn has begun.
func (p piece) enter(g *rig) time.Time {
	if g.enter() {
		return time.Time{}
	}
	return g.now.Add(time.Second)
}

// rests is for how long the box has been running idle.
func (g *rig) rests() time.Duration {
	if g.box.State != Idle {
		return 0
	}
	return g.now.Sub(g.box.Rests())
}

func (p piece) count(g *rig, sum *tally) {
	sum.pieces++
	sum.used += g.used
	sum.busy += g.busy
	sum.woken += g.woken
	sum.rebuilt += g.made - 1
	sum.cut += g.cut
	if g.vm.exists {
		sum.lived++
	}
	sum.flaws = append(sum.flaws, g.flaws...)
}

const days = 5

// policies are those that docs/lifecycle.md compares.
func policies() []Policy {
	with := func(pause, destroy time.Duration) Policy {
		p := Default()
		p.IdlePause, p.IdleDestroy = pause, destroy
		return p
	}
	const m, h = time.Minute, time.Hour
	return []Policy{
		with(m, h), with(2*m, h), with(5*m, h), with(5*m, 4*h), with(5*m, 24*h), with(10*m, h), with(15*m, h),
		with(0, 15*m), with(0, h), hobby(),
	}
}

// TestDay: fifty users keep boxes for less than a quarter longer than they have
// work for them.
func TestDay(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Policy{"usual": Default(), "hour": hobby()} {
		y := day(p, usual(), days)
		t.Logf("%s: %d days, %d sessions, %d turns: %.0f box hours for %.0f busy ones, %.3f; %d woken, %d rebuilt; idle for %s at most",
			name, days, y.pieces, y.turns, y.used.Hours(), y.busy.Hours(), y.ratio(), y.woken, y.rebuilt, y.idlest)
		if y.ratio() >= 1.25 {
			t.Errorf("%s: %.3f box hours per busy hour", name, y.ratio())
		}
	}
}

// TestDayOfEveryPolicy: whatever the policy, no turn is cut, every box ends, and
// none is idle for longer than it may be.
func TestDayOfEveryPolicy(t *testing.T) {
	t.Parallel()
	const late = 5 * time.Second
	for _, p := range policies() {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		limit := p.IdlePause
		if limit == 0 {
			limit = p.IdleDestroy
		}
		for _, w := range []workload{usual(), short()} {
			y := day(p, w, 1)
			for _, f := range y.flaws {
				t.Error(f)
			}
			if y.turns < 400 || y.cut > 0 || y.lived > 0 {
				t.Errorf("%+v: %d turns, %d were cut, %d boxes live on", p, y.turns, y.cut, y.lived)
			}
			if y.idlest > limit+late || y.idlest < limit {
				t.Errorf("%+v: a box was idle for %s", p, y.idlest)
			}
		}
	}
}

// TestWorkload: the model is what the docs say.
func TestWorkload(t *testing.T) {
	t.Parallel()
	w := usual()
	var lengths []time.Duration
	for _, p := range w.pieces(7) {
		lengths = append(lengths, p.turn())
		if p.asked.Before(dawn.Add(8*time.Hour)) || p.asked.After(dawn.Add(19*time.Hour)) {
			t.Errorf("asked at %s", p.asked)
		}
	}
	slices.Sort(lengths)
	if len(lengths) < 3*w.users || lengths[0] < w.shortest || lengths[len(lengths)-1] > w.longest {
		t.Errorf("%d pieces, turns of %s to %s", len(lengths), lengths[0], lengths[len(lengths)-1])
	}
}
