package agent

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ship/sandbox"
)

// TestServerDies: it is revived, the turn goes on, and the second time is one
// too many.
func TestServerDies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		deaths int
		want   Ending
	}{{"once", 1, Completed}, {"twice", 2, Crashed}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { serverDies(t, tt.deaths, tt.want) })
		})
	}
}

func serverDies(t *testing.T, deaths int, want Ending) {
	dead, died := false, 0
	var revived time.Time
	f := &fakeAgent{
		scene: func(f *fakeAgent, since time.Duration) Snapshot {
			told := len(f.said()) - 1
			switch {
			case died > told:
				return cutOff()
			case told > 0 && died == deaths:
				return done("in the end")
			}
			return busy(since / time.Second)
		},
		fail: func(f *fakeAgent, call string) error {
			last := max(len(f.said())-1, 0)
			if call == "snapshot" && !dead && died < deaths && died == last && time.Since(revived) > 10*time.Second && len(f.said()) > 0 {
				dead, died = true, died+1
			}
			if dead && call != "revive" {
				return ErrDown
			}
			return nil
		},
		revive: func(*fakeAgent) (bool, error) {
			dead, revived = false, time.Now()
			return true, nil
		},
	}
	res, err := Supervise(t.Context(), f, testRun())
	if err != nil {
		t.Fatal(err)
	}
	checkEnding(t, res, want, "")
	if f.count("revive") != deaths {
		t.Errorf("revived %d times, want %d", f.count("revive"), deaths)
	}
}

// TestOutOfReach: what errors from the agent lead to.
func TestOutOfReach(t *testing.T) {
	t.Parallel()
	on := func(call string, err error) func(*fakeAgent, string) error {
		return func(_ *fakeAgent, c string) error {
			if c == call {
				return err
			}
			return nil
		}
	}
	for _, tt := range []struct {
		name string
		fail func(*fakeAgent, string) error
		want Ending
		err  error
	}{
		{"server gone for good", on("snapshot", ErrDown), Crashed, nil},
		{"some other error for ever", on("snapshot", errors.New("500")), Crashed, nil},
		{"no conversation can be opened", on("open", ErrDown), Crashed, nil},
		{"conversation lost", on("snapshot", ErrUnknown), Crashed, nil},
		{"model not offered", on("prompt", ErrModel), Refused, nil},
		{"box gone", on("snapshot", fmt.Errorf("dial: %w", sandbox.ErrGone)), "", sandbox.ErrGone},
		{"credentials refused", on("open", fmt.Errorf("dial: %w", sandbox.ErrAuth)), "", sandbox.ErrAuth},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeAgent{scene: always(busy(1)), fail: tt.fail}
				res, err := Supervise(t.Context(), f, testRun())
				if !errors.Is(err, tt.err) {
					t.Errorf("error %v, want %v", err, tt.err)
				}
				if res.Ending != tt.want || (tt.want != "" && res.Cause == nil) {
					t.Errorf("result %+v", res)
				}
			})
		})
	}
}

// TestReviveFindsTheBoxGone: that is the caller's to deal with.
func TestReviveFindsTheBoxGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{
			scene:  always(busy(1)),
			fail:   func(_ *fakeAgent, call string) error { return map[string]error{"snapshot": ErrDown}[call] },
			revive: func(*fakeAgent) (bool, error) { return false, sandbox.ErrGone },
		}
		if _, err := Supervise(t.Context(), f, testRun()); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("error %v", err)
		}
	})
}

// TestDeadlineHoldsOutOfReach: an agent that cannot be asked does not outlive
// its time.
func TestDeadlineHoldsOutOfReach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{
			scene: always(busy(1)),
			fail:  func(_ *fakeAgent, call string) error { return map[string]error{"snapshot": ErrDown}[call] },
		}
		run := testRun()
		run.Limits.Deadline = time.Now().Add(30 * time.Second)
		res, err := Supervise(t.Context(), f, run)
		if err != nil || res.Ending != TimedOut {
			t.Errorf("result %+v, %v", res, err)
		}
	})
}
