package agent

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestEndings: what the agent does, how the turn ends, and when at the latest.
func TestEndings(t *testing.T) {
	t.Parallel()
	same := func(status CallStatus, err string) func(int) Call {
		return func(int) Call { return bash("make", status, err) }
	}
	for _, tt := range []struct {
		name  string
		scene scene
		want  Ending
		// by is when the turn must have ended, and not much earlier.
		by  time.Duration
		say string
	}{
		{"completes", after(time.Minute, done("all good")), Completed, time.Minute, ""},
		{"answers at once", always(done("yes")), Completed, 0, ""},
		{"runs into the deadline", stepping(func(n int) Call { return bash(fmt.Sprint(n), CallDone, "") }), TimedOut, 4 * time.Minute, "smaller task"},
		{"fails the same three times", stepping(same(CallFailed, "exit code 1")), Stuck, 4 * time.Second, "make"},
		{"succeeds the same ten times", stepping(same(CallDone, "")), Stuck, 18 * time.Second, "make"},
		{"fails in two ways in turn", stepping(func(n int) Call { return bash("make", CallFailed, fmt.Sprint(n%2)) }), TimedOut, 4 * time.Minute, ""},
		{"fails between other calls", stepping(func(n int) Call { return bash(fmt.Sprint(n%2), CallFailed, "e") }), TimedOut, 4 * time.Minute, ""},
		{"says nothing for long", always(busy(1)), Stalled, 5 * time.Minute, "5 minutes"},
		{"runs a silent tool", always(busy(1, bash("make", CallRunning, ""))), Stalled, 20 * time.Minute, "20 minutes"},
		{"has a dead tool further back", always(busy(1, bash("a", CallRunning, ""), bash("b", CallDone, ""))), Stalled, 5 * time.Minute, ""},
		{"retries for ever", retrying(2 * time.Second), Unreachable, 10 * time.Second, "overloaded"},
		{"waits very long for a retry", retrying(time.Hour), Unreachable, 5 * time.Minute, "overloaded"},
		{"has no budget left", always(failed(Failure{Status: 403, Code: CodeBudgetSpent})), Spent, 0, "money"},
		{"has no calls left", always(failed(Failure{Status: 403, Code: CodeCallsSpent})), Spent, 0, "model calls"},
		{"has a bad key", always(failed(Failure{Status: 401, Message: "bad key at https://u:secret@x/?token=secret"})), Refused, 0, "bad key"},
		{"has too long a context", always(failed(Failure{Name: "ContextOverflowError", Final: true, Message: "too long"})), Refused, 0, "too long"},
		{"is told to come back later", always(failed(Failure{Status: 429, Message: "slow down"})), Unreachable, 0, "slow down"},
		{"meets a broken provider", always(failed(Failure{Status: 502, Message: "bad gateway"})), Unreachable, 0, "bad gateway"},
		{"breaks by itself", always(failed(Failure{Name: "UnknownError", Message: "oops"})), Crashed, 0, "oops"},
		{"was aborted before", always(abortedBefore()), Stopped, 0, "Stopped"},
		{"never begins", always(idle(Snapshot{Fingerprint: "0"})), Refused, time.Minute, "did not begin"},
		{"is cut twice", always(cutOff()), Crashed, 6 * time.Second, "lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				run := testRun()
				run.Limits.Deadline = start.Add(time.Hour)
				if tt.want == TimedOut {
					run.Limits.Deadline = start.Add(tt.by)
				}
				res, err := Supervise(t.Context(), &fakeAgent{scene: tt.scene}, run)
				if err != nil {
					t.Fatal(err)
				}
				checkEnding(t, res, tt.want, tt.say)
				if took := time.Since(start); took < tt.by || took > tt.by+5*time.Second {
					t.Errorf("ended after %s, want about %s", took, tt.by)
				}
			})
		})
	}
}

func checkEnding(t *testing.T, res Result, want Ending, say string) {
	t.Helper()
	if res.Ending != want {
		t.Errorf("ended %q (%s, %v), want %q", res.Ending, res.Say, res.Cause, want)
	}
	if (res.Say == "") != (want == Completed) || !strings.Contains(res.Say, say) {
		t.Errorf("says %q, want it to contain %q", res.Say, say)
	}
	if strings.Contains(res.Say, "secret") {
		t.Errorf("a secret is shown: %s", res.Say)
	}
}

// retrying is a model that is always overloaded, asked again every so often.
func retrying(every time.Duration) scene {
	return func(_ *fakeAgent, since time.Duration) Snapshot {
		s := busy("same")
		s.Status = Status{Phase: Retrying, Attempt: int(since/every) + 1, Message: "overloaded"}
		return s
	}
}

func abortedBefore() Snapshot {
	s := done("")
	s.Aborted = true
	return s
}
