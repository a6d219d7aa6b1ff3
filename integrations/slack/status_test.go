package slack

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

const setStatus = "agents.sessions.setStatus"

// mood is what Slack's own display has of the session.
func (f *floor) mood() slacktest.Session { return f.Session(f.thread.channel, f.thread.root) }

// work is the effect of a job, for what has no effect of its own.
func (f *floor) work(j session.Job) *work {
	f.t.Helper()
	w, err := f.performer.begin(j)
	if err != nil {
		f.t.Fatal(err)
	}
	return w
}

// TestStatus: each state has its status, which is sent once, with who began it
// and what it is about.
func TestStatus(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	working := f.working()
	asks := finished()
	asks.Question = &session.Question{Text: "Which?"}
	asking := f.new()
	asking.Asking = &session.Asking{Request: f.asked()}
	waiting := over(working, finished())
	waiting.Waiting = []session.Admitted{{Request: f.asked()}}
	for i, tt := range []struct {
		state session.State
		want  string
		calls int
	}{
		{f.new(), "", 0},
		{working, "processing", 1},
		{working, "processing", 1},
		{over(working, asks), "suspended", 2},
		{working, "processing", 3},
		{over(working, session.Outcome{Ending: session.Stopped}), "active", 4},
		{over(working, finished()), "active", 4},
		{asking, "suspended", 5},
		{waiting, "processing", 6},
	} {
		if err := f.work(f.job(session.Report, tt.state)).status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := f.mood(); got.Status != tt.want || f.Calls(setStatus) != tt.calls {
			t.Errorf("%d: %+v after %d calls, want %q after %d", i, got, f.Calls(setStatus), tt.want, tt.calls)
		}
	}
	if got := f.mood(); got.Title != "Login test is flaky" || got.By != "ada" {
		t.Errorf("%+v", got)
	}
}

// TestStatusIsRenewed before Slack takes it back, and by another process.
func TestStatusIsRenewed(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	j := f.job(session.Report, f.working())
	for range 60 {
		if err := f.work(j).status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := f.mood(); got.Status != "processing" {
			t.Fatalf("%+v", got)
		}
		f.pass(5 * time.Minute)
	}
	if n := f.Calls(setStatus); n != 6 {
		t.Errorf("%d calls in five hours", n)
	}
	j.Lease.Epoch++
	if err := f.work(j).status(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := f.Calls(setStatus); n != 7 {
		t.Errorf("%d calls after the lease was taken over", n)
	}
}

// TestStatusNotWanted: a workspace without statuses is left alone for an hour,
// and nothing fails by it.
func TestStatusNotWanted(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"feature_disabled", "missing_scope", "unknown_method"} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			f := newFloor(t, slacktest.Options{})
			f.Inject(refusing(setStatus, answer))
			for i, s := range []session.State{f.working(), over(f.working(), finished()), f.working()} {
				if err := f.work(f.job(session.Report, s)).status(t.Context()); err != nil || f.Calls(setStatus) != 1 {
					t.Errorf("%d: %v after %d calls", i, err, f.Calls(setStatus))
				}
			}
			f.ClearFaults()
			f.pass(deafFor)
			if err := f.work(f.job(session.Report, f.working())).status(t.Context()); err != nil || f.mood().Status != "processing" {
				t.Errorf("an hour later: %v, %+v", err, f.mood())
			}
		})
	}
}

// TestStatusRefused in one thread: the others are told all the same.
func TestStatusRefused(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	f.Inject(slacktest.Failing(setStatus, "not_in_channel"))
	for range 3 {
		if err := f.work(f.job(session.Report, f.working())).status(t.Context()); err != nil || f.Calls(setStatus) != 1 {
			t.Errorf("%v after %d calls", err, f.Calls(setStatus))
		}
	}
	f.thread = f.mentioned("eng")
	if err := f.work(f.job(session.Report, f.working())).status(t.Context()); err != nil || f.mood().Status != "processing" {
		t.Errorf("%v, %+v", err, f.mood())
	}
}

// TestStatusOfSomebodyElse: who is not in the channel is left out.
func TestStatusOfSomebodyElse(t *testing.T) {
	t.Parallel()
	for name, who := range map[string]func(*floor) string{
		"not there":        func(f *floor) string { return ref{kind: refMessage, ts: rootTS, user: f.PersonID("bob")}.String() },
		"nobody":           func(*floor) string { return "" },
		"of earlier times": func(*floor) string { return "message/" + rootTS },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFloor(t, slacktest.Options{})
			s := f.working()
			s.Turn.Requests[0].Ref = who(f)
			s.Title = strings.Repeat("A long\ntitle ", 40)
			if err := f.work(f.job(session.Report, s)).status(t.Context()); err != nil {
				t.Error(err)
			}
			if got := f.mood(); got.Status != "processing" || got.By != "" || length(got.Title) > 200 || strings.Contains(got.Title, "\n") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestStatusLater: what could not be told is told later, and not for ever.
func TestStatusLater(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	f.Inject(slacktest.Fault{On: setStatus, Status: http.StatusBadGateway, Times: -1})
	for i := range 5 {
		err := f.work(f.job(session.Report, f.working())).status(t.Context())
		if noRoom(err) != (i+1 < statusTries) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if n := f.Calls(setStatus); n != statusTries {
		t.Errorf("%d calls", n)
	}
}

// TestStatusAfterStop: Slack's own button was pressed when nothing went on, so
// Slack believes otherwise.
func TestStatusAfterStop(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := over(f.working(), finished())
	for want := range 3 {
		f.do(f.seen(session.Stop, ref{kind: refStop}, s))
		if f.mood().Status != "active" || f.Calls(setStatus) != want+1 {
			t.Errorf("%+v after %d calls", f.mood(), f.Calls(setStatus))
		}
	}
	f.do(f.seen(session.Stop, ref{kind: refStop}, f.working()))
	if f.Calls(setStatus) != 3 {
		t.Error("the status of a turn that is about to end was set")
	}
}
