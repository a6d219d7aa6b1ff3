package turn

import (
	"errors"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/agent"
	"ship/sandbox/broker"
	"ship/session"
)

// TestAClockThatIsWrong: the turn lasts as long as it may, whatever the clock
// of the machine that it came to says.
func TestAClockThatIsWrong(t *testing.T) {
	t.Parallel()
	signer, err := broker.NewSigner(make([]byte, broker.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := New(Config{Tokens: signer})
	for _, skew := range []time.Duration{0, 3 * time.Hour, -3 * time.Hour} {
		storeNow := func() time.Time { return time.Now().Add(skew) }
		var told session.Progress
		job := session.Job{Now: storeNow, Progress: func(p session.Progress) { told = p }, State: session.State{
			ID: "gh.1.7", Repo: session.Repo{Name: "acme/widgets"}, Branch: "ship/x",
			Turn: &session.Turn{N: 1, Stage: session.Running, Deadline: storeNow().Add(time.Hour), Requests: []session.Request{{ID: "r"}}},
		}}
		job.Latest = func() session.State { return job.State }
		near := func(what string, at time.Time, want time.Duration, now time.Time) {
			t.Helper()
			if d := at.Sub(now) - want; d.Abs() > time.Minute {
				t.Errorf("skew %s: %s is off by %s", skew, what, d)
			}
		}
		talk := newTalk(w, job, nil)
		talk.write = func([]string) {}
		near("the deadline", talk.run(0).Limits.Deadline, time.Hour, time.Now())
		talk.progress(agent.Progress{Active: time.Now()})
		near("the last activity", told.Active, 0, storeNow())
		box := &machine{files: map[string]string{}}
		if err := w.hand(t.Context(), job, box); err != nil {
			t.Fatal(err)
		}
		token := box.files[sandbox.TokenPath]
		end := time.Now().Add(time.Hour + publishing)
		if _, err := signer.Verify(token, end.Add(-time.Minute)); err != nil {
			t.Errorf("skew %s: before the end: %v", skew, err)
		}
		if _, err := signer.Verify(token, end.Add(time.Minute)); !errors.Is(err, broker.ErrExpired) {
			t.Errorf("skew %s: after the end: %v", skew, err)
		}
	}
}
