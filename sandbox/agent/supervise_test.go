package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var errStop, errLeave = errors.New("stop requested"), errors.New("shutting down")

func testRun() Run {
	return Run{
		Title: "t", StopCause: errStop,
		Prompt: Prompt{ID: "p", Text: "do it", Model: Model{Provider: "acme", Name: "m1"}},
	}
}

// TestLimitsEndTheWork: whatever limit was hit, the agent is quiet afterwards.
func TestLimitsEndTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: always(busy(1)), slowAbort: 3 * time.Second}
		res, err := Supervise(t.Context(), f, testRun())
		if err != nil || res.Ending != Stalled || res.Cause != nil {
			t.Errorf("result %+v, %v", res, err)
		}
		if f.count("abort") == 0 {
			t.Error("the agent was not stopped")
		}
		if snap, _ := f.Snapshot(t.Context(), "c:t", "p"); snap.Status.Phase != Idle {
			t.Error("returned before the agent was idle")
		}
	})
}

// TestAgentThatCannotBeStopped is given up after a while, and that is told.
func TestAgentThatCannotBeStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: always(busy(1)), slowAbort: time.Hour}
		start := time.Now()
		res, err := Supervise(t.Context(), f, testRun())
		if err != nil || res.Ending != Stalled || !errors.Is(res.Cause, errQuieting) {
			t.Errorf("result %+v, %v", res, err)
		}
		if took := time.Since(start); took > 6*time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: after(time.Hour, done("late"))}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(fmt.Errorf("octocat: %w", errStop)) })
		res, err := Supervise(ctx, f, testRun())
		if err != nil || res.Answer != "so far" {
			t.Errorf("result %+v, %v", res, err)
		}
		checkEnding(t, res, Stopped, "Stopped")
		if f.count("abort") == 0 {
			t.Error("the agent was not stopped")
		}
	})
}

// TestStopAfterTakeover: a stop that is there from the beginning reaches a turn
// whose conversation this process never learned.
func TestStopAfterTakeover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: after(time.Hour, done("late"))}
		if err := f.Prompt(t.Context(), "c:t", testRun().Prompt); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errStop)
		res, err := Supervise(ctx, f, testRun())
		if err != nil || res.Conversation != "c:t" || f.count("abort") == 0 {
			t.Errorf("result %+v, %v, %d aborts", res, err, f.count("abort"))
		}
		checkEnding(t, res, Stopped, "")
	})
}

// TestLeaveAndReturn: a shutdown leaves the turn alone, and the next process
// finds it.
func TestLeaveAndReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: after(10*time.Minute, done("late"))}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errLeave) })
		res, err := Supervise(ctx, f, testRun())
		if !errors.Is(err, errLeave) || !cmp.Equal(res, Result{}) {
			t.Errorf("left with %+v, %v", res, err)
		}
		if f.count("abort") != 0 {
			t.Error("the agent was stopped")
		}
		run := testRun()
		run.Conversation = "c:t"
		run.Limits.Deadline = time.Now().Add(time.Minute)
		time.Sleep(20 * time.Minute) // both the deadline and the turn's end pass
		res, err = Supervise(t.Context(), f, run)
		if err != nil || res.Answer != "late" {
			t.Errorf("result %+v, %v", res, err)
		}
		checkEnding(t, res, Completed, "")
		if diff := cmp.Diff([]string{"p"}, f.said()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNoStopCauseNeverStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: always(busy(1))}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(nil) })
		run := testRun()
		run.StopCause = nil
		if _, err := Supervise(ctx, f, run); !errors.Is(err, context.Canceled) || f.count("abort") != 0 {
			t.Errorf("left with %v", err)
		}
	})
}

// TestCutGoesOn: a turn that was cut is continued once, with the same model.
func TestCutGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: func(f *fakeAgent, since time.Duration) Snapshot {
			switch {
			case len(f.said()) > 1:
				return done("after all")
			case since < time.Minute:
				return busy(since / time.Second)
			}
			return cutOff()
		}}
		res, err := Supervise(t.Context(), f, testRun())
		if err != nil {
			t.Fatal(err)
		}
		checkEnding(t, res, Completed, "")
		if diff := cmp.Diff([]string{"p", "p.continue"}, f.said()); diff != "" {
			t.Error(diff)
		}
		if last := f.prompts[1]; last.Model != testRun().Prompt.Model || last.Text != continueText {
			t.Errorf("continued with %+v", last)
		}
	})
}

// TestIdleBeforeWork: the agent is idle for a moment after it took the prompt.
func TestIdleBeforeWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: func(_ *fakeAgent, since time.Duration) Snapshot {
			switch {
			case since < 10*time.Second:
				return idle(Snapshot{Fingerprint: "0"})
			case since < 20*time.Second:
				return busy(since / time.Second)
			case since < 22*time.Second:
				return cutOff()
			}
			return done("yes")
		}}
		res, err := Supervise(t.Context(), f, testRun())
		if err != nil {
			t.Fatal(err)
		}
		checkEnding(t, res, Completed, "")
		if diff := cmp.Diff([]string{"p"}, f.said()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestConversationForgotten: a new box knows the old conversation no more.
func TestConversationForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: always(done("hello")), conversations: []string{"c:t"}}
		run := testRun()
		run.Conversation = "c:lost"
		res, err := Supervise(t.Context(), f, run)
		if err != nil || res.Conversation != "c:t" || res.Ending != Completed {
			t.Errorf("result %+v, %v", res, err)
		}
	})
}

// TestPromptForgotten: a box that was put back to an older state is told again.
func TestPromptForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		forgot := false
		f := &fakeAgent{scene: func(f *fakeAgent, since time.Duration) Snapshot {
			if since > time.Minute && !forgot {
				forgot = true
				f.mu.Lock()
				f.prompts, f.begun = nil, time.Time{}
				f.mu.Unlock()
				return idle(Snapshot{Fingerprint: "0"})
			}
			if forgot && since > time.Minute {
				return done("again")
			}
			return busy(since / time.Second)
		}}
		res, err := Supervise(t.Context(), f, testRun())
		if err != nil || res.Answer != "again" {
			t.Errorf("result %+v, %v", res, err)
		}
		if diff := cmp.Diff([]string{"p"}, f.said()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestHintsDoNotFlood: a thousand hints a second lead to few looks, and one
// hint to an early one.
func TestHintsDoNotFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: after(time.Minute, done("yes")), hints: 1000}
		start := time.Now()
		if _, err := Supervise(t.Context(), f, testRun()); err != nil {
			t.Fatal(err)
		}
		if n := f.count("snapshot"); n > 125 || n < 60 {
			t.Errorf("%d looks in a minute", n)
		}
		if late := time.Since(start) - time.Minute; late > 600*time.Millisecond {
			t.Errorf("noticed the end %s late", late)
		}
	})
}

func TestProgressAndUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAgent{scene: func(_ *fakeAgent, since time.Duration) Snapshot {
			if since > 6*time.Second {
				s := done("the key is hunter2")
				s.Calls = []Call{{Tool: "bash", Command: "echo hunter2", Status: CallDone}}
				return s
			}
			s := busy(since/(4*time.Second), bash("cat hunter2", CallRunning, ""))
			s.Todos = []Todo{{Text: "find hunter2", Status: "pending"}}
			s.Usage = Usage{Calls: 1}
			return s
		}}
		run := testRun()
		var told []Progress
		run.Progress = func(p Progress) { told = append(told, p) }
		run.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
		asked := 0
		run.Usage = func(context.Context) (Usage, error) {
			asked++
			if asked == 1 {
				return Usage{}, errors.New("not now")
			}
			return Usage{Calls: 7, USD: 0.5}, nil
		}
		res, err := Supervise(t.Context(), f, run)
		if err != nil || res.Usage != (Usage{Calls: 7, USD: 0.5}) {
			t.Errorf("result %+v, %v", res, err)
		}
		want := []Progress{
			{Conversation: "c:t", Doing: "bash: cat ***", Steps: []string{"bash: cat ***"}, Usage: Usage{Calls: 1}},
			{Conversation: "c:t", Doing: "bash: cat ***", Steps: []string{"bash: cat ***"}, Usage: Usage{Calls: 7, USD: 0.5}},
			{Conversation: "c:t", Doing: "finished", Steps: []string{"bash"}, Usage: Usage{Calls: 7, USD: 0.5}},
		}
		want[0].Todos = []Todo{{Text: "find ***", Status: "pending"}}
		want[1].Todos = want[0].Todos
		opts := cmp.Options{cmpopts.IgnoreFields(Progress{}, "Active"), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(want, told, opts); diff != "" {
			t.Error(diff)
		}
		if res.Answer != "the key is ***" || res.Calls[0].Command != "echo ***" {
			t.Errorf("a secret got out: %+v", res)
		}
	})
}
