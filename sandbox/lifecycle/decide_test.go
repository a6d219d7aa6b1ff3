package lifecycle

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox"
)

// at is so long after dawn.
func at(d time.Duration) time.Time { return dawn.Add(d) }

// told applies events, one a second, to a new box that was attached to
// wherever a turn begins.
func told(t *testing.T, events ...Event) Box {
	t.Helper()
	b := New("s", 1, dawn)
	b.ID = "box"
	for i, e := range events {
		now := at(time.Duration(i+1) * time.Second)
		if e == TurnBegun {
			b = b.Attach(now)
		}
		var err error
		if b, err = b.Apply(e, now); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const m, h, s = time.Minute, time.Hour, time.Second
	busy, idle := []Event{Made, TurnBegun}, []Event{Made, TurnBegun, TurnEnded} // idle from 3 s on
	paused := append(idle[:3:3], PauseAsked, PauseDone)
	never, late := Default(), hobby()
	never.IdlePause, never.IdleDestroy = 0, 0
	late.IdlePause, late.IdleDestroy = 50*m, 3*h
	brief := late
	brief.Margin = 4 * m
	for _, c := range []struct {
		name    string
		events  []Event
		policy  Policy
		expires time.Duration
		now     time.Duration
		action  Action
		at      time.Duration // negative: never
	}{
		{"a turn began: the attach had cut its time", busy, Default(), 3 * m, 3 * s, Extend, 10*m + 3*s},
		{"at work, and time enough", busy, Default(), 10 * m, 10 * s, Nothing, 3*m + 10*s},
		{"a heartbeat later", busy, Default(), 10 * m, 3*m + 10*s, Extend, 13*m + 10*s},
		{"more time than asked for is left alone", busy, Default(), 5 * h, 3 * m, Nothing, 6 * m},
		{"nobody ended the turn", busy, Default(), 90*m + 2*s, 100 * m, Nothing, 103 * m},
		{"near the cap", busy, hobby(), h, 56 * m, Warn, h},
		{"not beyond the cap", busy, hobby(), 50 * m, 49 * m, Extend, 50*m + 2*s}, // TurnTimeout and Margin

		{"just idle: keep it until the pause", idle, Default(), 4 * m, 4 * s, Extend, 15*m + 3*s},
		{"idle, and time enough", idle, Default(), 10 * m, 4 * s, Nothing, 5*m + 3*s},
		{"idle for long", idle, Default(), 10 * m, 5*m + 3*s, Pause, 5*m + 3*s},
		{"idle for an hour, unseen", idle, Default(), 2 * h, 2 * h, Destroy, h + 3*s},
		{"idle before the cap", idle, late, 55 * m, 50 * m, Pause, 50 * m},
		{"idle before the cap, which comes first", idle, brief, 50 * m, 45 * m, Extend, h},
		{"never let go", idle, never, 4 * m, 4 * s, Extend, 10*m + 4*s},
		{"never let go, and time enough", idle, never, 9 * m, 4 * s, Nothing, 3*m + 4*s},

		{"made for nothing", []Event{Made}, Default(), 20 * m, 5*m + s, Destroy, 5*m + s},
		{"not made yet", nil, Default(), 0, m, Nothing, 2 * m},
		{"never made", nil, Default(), 0, 2 * m, Destroy, 2 * m},
		{"pausing", append(idle[:3:3], PauseAsked), Default(), 0, m, Nothing, 2*m + 4*s},
		{"pausing for long", append(idle[:3:3], PauseAsked), Default(), 0, 3 * m, Pause, 2*m + 4*s},
		{"a pause failed", append(idle[:3:3], PauseAsked, PauseFailed), Default(), 20 * m, 5*m + 3*s, Pause, 5*m + 3*s},
		{"pausing fails", []Event{Made, TurnBegun, TurnEnded, PauseAsked, PauseFailed, PauseAsked, PauseFailed, PauseAsked, PauseFailed}, Default(), 20 * m, m, Destroy, 9 * s},
		{"pausing is not heard of", []Event{Made, TurnBegun, TurnEnded, PauseAsked, PauseAsked, PauseAsked}, Default(), 0, 3 * m, Destroy, 2*m + 6*s},
		{"paused", paused, Default(), 0, 50 * m, Nothing, h + 3*s},
		{"paused for an hour", paused, Default(), 0, h + 3*s, Destroy, h + 3*s},
		{"paused for ever", paused, never, 0, 99 * h, Nothing, -1},
		{"woke, and nobody came", append(paused[:5:5], SeenRunning), Default(), 0, 3 * m, Destroy, 2*m + 6*s},
		{"lost", append(busy[:2:2], Gone), Default(), 0, 4 * s, Destroy, 3 * s},
		{"ending", append(busy[:2:2], DestroyAsked), Default(), 0, 4 * s, Nothing, 18 * s},
		{"ending is not heard of", append(busy[:2:2], DestroyAsked, DestroyAsked), Default(), 0, 34 * s, Destroy, 34 * s},
		{"ended", append(busy[:2:2], DestroyAsked, DestroyDone), Default(), 0, h, Nothing, -1},
	} {
		b := told(t, c.events...)
		want := at(c.at)
		if c.at < 0 {
			want = time.Time{}
		}
		d, err := Decide(b, Reading{Expires: at(c.expires), At: at(c.now)}, c.policy, at(c.now))
		if err != nil || d.Action != c.action || !d.At.Equal(want) || d.Reason == "" && b.State != Destroyed {
			t.Errorf("%s: %s at %s (%s), %v; want %s at %s", c.name, d.Action, d.At.Sub(dawn), d.Reason, err, c.action, c.at)
		}
		if due := Due(b, c.policy); d.Action == Nothing && !b.runs() && !due.Equal(d.At) {
			t.Errorf("%s: due at %s, nothing until %s", c.name, due, d.At)
		}
	}
}

// TestCap: the end is told once, and only then, and only when it is over, a box
// is destroyed with a turn in it.
func TestCap(t *testing.T) {
	t.Parallel()
	p := hobby()
	b := told(t, Made, TurnBegun)
	for _, c := range []struct {
		after  time.Duration
		action Action
	}{
		{54 * time.Minute, Nothing}, {55 * time.Minute, Warn}, {56 * time.Minute, Nothing}, {time.Hour - 1, Nothing}, {time.Hour, Destroy},
	} {
		d, err := Decide(b, Reading{Expires: at(2 * time.Hour), At: at(c.after)}, p, at(c.after))
		if err != nil || d.Action != c.action {
			t.Errorf("%s: %+v, %v", c.after, d, err)
		}
		if d.Action == Warn {
			b = b.Warn()
		}
	}
	if paused, err := b.Apply(SeenPaused, at(time.Hour)); err != nil || !paused.Warned {
		t.Fatal(err)
	} else if woken, err := paused.Apply(ResumeAsked, at(time.Hour)); err != nil || woken.Warned {
		t.Errorf("a new span has a warning of its own: %v", err)
	}
}

func TestStale(t *testing.T) {
	t.Parallel()
	b := told(t, Made, TurnBegun) // attached and busy since 2 s
	now := at(time.Minute)
	for name, r := range map[string]Reading{
		"none":                  {},
		"too old":               {At: now.Add(-31 * time.Second)},
		"from the future":       {At: now.Add(1)},
		"from before the state": {At: at(time.Second)},
	} {
		if d, err := Decide(b, r, Default(), now); !errors.Is(err, ErrStale) || d != (Decision{}) {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	r := Read(sandbox.Info{Expires: at(10 * time.Minute)}, now)
	for name, b := range map[string]Box{"attached": b.Attach(now.Add(1)), "extended": b.Extend(at(time.Hour), now.Add(1))} {
		if _, err := Decide(b, r, Default(), now.Add(2)); !errors.Is(err, ErrStale) {
			t.Errorf("%s since: %v", name, err)
		}
	}
	if _, err := Decide(b, r, Default(), now); err != nil {
		t.Error(err)
	}
}

// TestShortenedByAttach: what a connect took away is given back, all of it.
func TestShortenedByAttach(t *testing.T) {
	t.Parallel()
	b := told(t, Made, TurnBegun, TurnEnded)
	b = b.Extend(at(40*time.Minute), at(4*time.Second)).Attach(at(5 * time.Second))
	now := at(6 * time.Second)
	d, err := Decide(b, Reading{Expires: at(30 * time.Minute), At: now}, Default(), now)
	if err != nil || d.Action != Extend || !d.At.Equal(at(40*time.Minute)) {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestGrantsLess: a provider that does not go as far as it is asked to is not
// asked again at once.
func TestGrantsLess(t *testing.T) {
	t.Parallel()
	now := at(time.Minute)
	b := told(t, Made, TurnBegun).Extend(at(11*time.Minute), now)
	r := Reading{Expires: at(2 * time.Minute), At: now}
	d, err := Decide(b, r, Default(), now)
	if err != nil || d.Action != Nothing || !d.At.Equal(at(4*time.Minute)) {
		t.Errorf("asked again at once: %+v, %v", d, err)
	}
	r.At = d.At
	if d, err = Decide(b, r, Default(), d.At); err != nil || d.Action != Extend {
		t.Errorf("a heartbeat later: %+v, %v", d, err)
	}
}

func TestEnter(t *testing.T) {
	t.Parallel()
	idle := []Event{Made, TurnBegun, TurnEnded}
	paused := append(idle[:3:3], PauseAsked, PauseDone)
	for _, c := range []struct {
		name   string
		events []Event
		after  time.Duration
		step   Step
	}{
		{"asked for", nil, time.Second, Make},
		{"made", []Event{Made}, time.Second, Use},
		{"at work", idle[:2], 59 * time.Minute, Use},
		{"idle", idle, 10 * time.Minute, Use},
		{"idle, too near the cap", idle, 10*time.Minute + 1, Rebuild},
		{"pausing", append(idle[:3:3], PauseAsked), time.Minute, Wait},
		{"pausing, not heard of", append(idle[:3:3], PauseAsked), 3 * time.Minute, Rebuild},
		{"paused for long", paused, 5 * time.Hour, Resume},
		{"waking", append(paused[:5:5], ResumeAsked), time.Minute, Resume},
		{"woke long ago", append(paused[:5:5], SeenRunning), 11 * time.Minute, Rebuild},
		{"behind", append(paused[:5:5], ResumeAsked, Behind), time.Minute, Rebuild},
		{"ending", append(idle[:3:3], DestroyAsked), time.Minute, Rebuild},
		{"ended", append(idle[:3:3], DestroyAsked, DestroyDone), time.Minute, Make},
	} {
		b := told(t, c.events...)
		if e := Enter(b, hobby(), at(c.after)); e.Step != c.step || e.Reason == "" || (e.Step == Wait) == e.At.IsZero() {
			t.Errorf("%s: %+v, want %s", c.name, e, c.step)
		}
	}
	if e := Enter(Box{}, hobby(), dawn); e.Step != Make {
		t.Errorf("none: %+v", e)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	idle := told(t, Made, TurnBegun, TurnEnded)
	if b, err := idle.Apply(TurnBegun, at(time.Minute)); !errors.Is(err, ErrUnprobed) || b != idle {
		t.Errorf("a turn without a probe: %v", err)
	}
	if b, err := idle.Apply(ResumeDone, at(time.Minute)); !errors.Is(err, ErrRefused) || b != idle {
		t.Errorf("a resume that nobody asked for: %v", err)
	}
	for _, e := range []Event{Gone, SeenPaused} {
		if b, err := idle.Apply(e, idle.Since.Add(-1)); err != nil || b != idle {
			t.Errorf("an old look: %v, %s", err, cmp.Diff(idle, b))
		}
	}
	if idle.Marker != 1 || idle.Woken(1) != ResumeDone || idle.Woken(0) != Behind {
		t.Errorf("marker %d", idle.Marker)
	}
	woken := told(t, Made, TurnBegun, TurnEnded, PauseAsked, PauseDone, ResumeAsked)
	if !woken.Born.Equal(at(6*time.Second)) || !woken.Until.IsZero() {
		t.Errorf("a resume starts a new span: %+v", woken)
	}
	woke := told(t, Made, TurnBegun, TurnEnded, PauseAsked, PauseDone, SeenRunning)
	if !woke.Born.Equal(at(5 * time.Second)) {
		t.Errorf("nobody knows when it woke: %+v", woke)
	}
}

func TestActivity(t *testing.T) {
	t.Parallel()
	b := told(t, Made, TurnBegun, TurnEnded)
	for _, a := range []Activity{Probe, Poll, Preview, StatusLook, "another"} {
		if got := b.Touch(a, at(time.Hour)); got != b {
			t.Errorf("%s starts the idle clock anew", a)
		}
	}
	for _, a := range []Activity{Message, ToolCall, FileChange} {
		got := b.Touch(a, at(time.Minute)).Touch(a, at(2*time.Second))
		if !got.Rests().Equal(at(time.Minute)) {
			t.Errorf("%s: idle since %s", a, got.Rests())
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, p := range []Policy{Default(), hobby()} {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
	for name, change := range map[string]func(*Policy){
		"paused when destroyed":    func(p *Policy) { p.IdlePause = p.IdleDestroy },
		"a cap that is too short":  func(p *Policy) { p.Cap = p.TurnTimeout + p.Margin },
		"a ttl beyond the cap":     func(p *Policy) { p.TTL = p.Cap + 1 },
		"a warning at the start":   func(p *Policy) { p.Warn = p.Cap },
		"a slow heart":             func(p *Policy) { p.Heartbeat = p.TTL/3 + 1 },
		"old news":                 func(p *Policy) { p.Fresh = p.Heartbeat + 1 },
		"slower than its own time": func(p *Policy) { p.Settle = p.TTL + 1 },
		"negative":                 func(p *Policy) { p.IdlePause = -1 },
		"no turn":                  func(p *Policy) { p.TurnTimeout = 0 },
		"no warning":               func(p *Policy) { p.Warn = 0 },
		"no ttl":                   func(p *Policy) { p.TTL = 0 },
	} {
		p := hobby()
		change(&p)
		if err := p.Validate(); !errors.Is(err, ErrPolicy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := Default()
	p.IdlePause, p.IdleDestroy, p.Warn = 0, 0, 0
	if err := p.Validate(); err != nil {
		t.Errorf("never paused, never destroyed, without a cap: %v", err)
	}
}
