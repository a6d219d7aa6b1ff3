package slack

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/config"
	"ship/integrations/slack/slacktest"
	"ship/session"
	"ship/session/memory"
)

// floor is the stand-in for Slack with a thread in which we were asked for
// something, and the real performer. Its clock can be turned.
type floor struct {
	*slacktest.Server
	t         *testing.T
	performer *Performer
	quota     *memory.Quota
	thread    thread
	clock     time.Duration
}

func newFloor(t *testing.T, o slacktest.Options) *floor {
	t.Helper()
	server, err := slacktest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		for _, v := range server.Violations() {
			t.Error(v)
		}
	})
	f := &floor{Server: server, t: t, quota: &memory.Quota{}}
	f.performer = f.gateway(&http.Transport{DisableKeepAlives: true})
	f.CreateChannel(slacktest.Channel{Name: "eng", Members: []string{"ada"}})
	f.thread = f.mentioned("eng")
	return f
}

// mentioned is one more thread in which we were asked for something.
func (f *floor) mentioned(channel string) thread {
	f.t.Helper()
	ts, _ := f.Mention(slacktest.Said{Channel: channel, By: "ada", Text: "fix the login test"})
	return thread{f.TeamID(), f.ChannelID(channel), ts}
}

// gateway is another process.
func (f *floor) gateway(next http.RoundTripper) *Performer {
	c := Config{
		Settings: Settings{BotToken: config.NewSecret(f.BotToken()), APIURL: f.APIURL(), Slow: 20 * time.Minute},
		Quota:    f.quota, Transport: next, Logger: slog.New(slog.DiscardHandler),
	}
	return newPerformer(newApp(c), c)
}

// now is the clock by which everything happens here.
func (f *floor) now() time.Time { return time.Now().Add(f.clock) }

// pass lets time go by.
func (f *floor) pass(d time.Duration) {
	f.clock += d
	f.Advance(d)
}

// asked is a request of Ada's in the thread.
func (f *floor) asked() session.Request {
	return session.Request{
		ID: "r1", Thread: f.thread.session(), By: session.Person{Login: "ada-at-github"}, Verb: session.Instruct, Early: true,
		Ref: ref{kind: refMessage, ts: f.thread.root, user: f.PersonID("ada")}.String(), At: f.now(),
	}
}

// new is the state of a session that was asked for something just now.
func (f *floor) new() session.State {
	return session.State{ID: f.thread.id(), Threads: []session.Voice{{Thread: f.thread.session()}}}
}

// working is the state of a session in the middle of its first turn.
func (f *floor) working() session.State {
	return session.State{
		ID: f.thread.id(), Title: "Login test is flaky", Turns: 1,
		Repo:   session.Repo{Platform: "github", Name: "acme/widgets", Key: "k"},
		Branch: "ship/login-test", Base: "main",
		Threads: []session.Voice{{Thread: f.thread.session(), Talks: true}},
		Turn: &session.Turn{
			N: 1, Stage: session.Running, Model: "acme/large", Started: f.now(), Requests: []session.Request{f.asked()},
			Progress: session.Progress{
				Doing: "bash: go test ./...", Steps: []string{"read: login_test.go", "bash: go test ./..."},
				Todos: []session.Todo{{Text: "Find the flake", Status: "completed"}, {Text: "Fix it", Status: "in_progress"}},
			},
		},
	}
}

// over ends the turn of a state.
func over(s session.State, o session.Outcome) session.State {
	s.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7", Draft: true}
	turn := *s.Turn
	turn.Stage, turn.Outcome, turn.Took, turn.Changed, turn.Files, turn.Finished = session.Ended, &o, 720, true, 2, time.Now()
	s.Turn = &turn
	return s
}

func finished() session.Outcome {
	return session.Outcome{Ending: session.Completed, Answer: "The test waits for the server now.", Usage: session.Usage{Calls: 3, USD: 0.5}}
}

// job makes one of an effect in the thread.
func (f *floor) job(k session.EffectKind, state session.State) session.Job {
	in := f.thread.session()
	return session.Job{
		Effect: session.Effect{ID: string(k) + "-" + dashed(f.thread.root), Kind: k, By: Platform, Thread: &in, Turn: state.Turns, Since: f.now()},
		State:  state, Now: f.now, Lease: session.Lease{Epoch: 1},
		Latest: func() session.State { return state }, Progress: func(session.Progress) {},
	}
}

// seen is the job of acknowledging a request, which is admitted after that.
func (f *floor) seen(verb session.Verb, at ref, state session.State) session.Job {
	state.Pending = append(slices.Clone(state.Pending), session.Effect{Kind: session.Admit})
	j := f.job(session.Acknowledge, state)
	j.Effect.Ref, j.Effect.Request = at.String(), &session.Request{Verb: verb}
	return j
}

// again is a job that may have been performed before.
func again(j session.Job) session.Job {
	j.Repeat, j.Effect.Attempts = true, j.Effect.Attempts+1
	return j
}

// do performs what must succeed.
func (f *floor) do(j session.Job) session.Performed {
	f.t.Helper()
	done, err := f.performer.Perform(f.t.Context(), j)
	if err != nil {
		f.t.Fatalf("%s: %v", j.Effect.Kind, err)
	}
	if done.Effect != j.Effect.ID {
		f.t.Errorf("%s: performed %q", j.Effect.Kind, done.Effect)
	}
	return done
}

// fails performs what must not succeed.
func (f *floor) fails(j session.Job) *session.Problem {
	f.t.Helper()
	_, err := f.performer.Perform(f.t.Context(), j)
	var p *session.Problem
	if !errors.As(err, &p) {
		f.t.Fatalf("%s: %v is no problem", j.Effect.Kind, err)
	}
	return p
}

// kept is a state after an effect was performed, as the session keeps it.
func (f *floor) kept(s session.State, done session.Performed) session.State {
	v := s.Threads[0]
	if ref := done.Voice + done.Ref; ref != "" {
		v.Ref, v.Shown, v.At = ref, done.Shown, f.now()
	}
	s.Threads = []session.Voice{v}
	return s
}

// lines are our messages in the thread as people read them, a line each.
func (f *floor) lines() []string {
	var out []string
	for _, m := range f.Thread(f.thread.channel, f.thread.root) {
		if m.By == "ship" {
			out = append(out, strings.ReplaceAll(m.Plain, "\n", " / "))
		}
	}
	return out
}

// refusing is what Slack answers a method with each time, when it refuses.
func refusing(method, code string) slacktest.Fault {
	fault := slacktest.Failing(method, code)
	fault.Times = -1
	return fault
}
