package linear

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/config"
	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/integrations/linear/lineartest/schema"
	"ship/session"
	"ship/session/memory"
)

// published is Linear's own schema, loaded once; nil where it is not to be had.
var published = sync.OnceValues(func() (lineartest.Validator, error) {
	path := filepath.Join("..", "..", "..", "shared", "data", "linear-schema.graphql")
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	return schema.Load(path)
})

// operations of the stand-in that the speaking half uses.
var operations = []string{
	"ReadViewer", "ReadActivity", "ReadActivities", "CreateActivity", "Ask", "SetPlan", "SetURLs", "Attach", "LinkPullRequest",
}

// stage is the stand-in for Linear with one issue that was handed to us, and
// the real performer.
type stage struct {
	*lineartest.Server
	t         *testing.T
	performer *Performer
	quota     *memory.Quota
	thread    thread
	issue     string
}

func newStage(t *testing.T, o lineartest.Options) *stage {
	t.Helper()
	v, err := published()
	if err != nil {
		t.Fatal(err)
	}
	o.Validator = v
	server, err := lineartest.New(o)
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
	s := &stage{Server: server, t: t, quota: &memory.Quota{}}
	s.performer = s.gateway(&http.Transport{DisableKeepAlives: true})
	server.CreateTeam("ENG", "Engineering")
	s.issue, s.thread = s.delegated()
	return s
}

// delegated is one more issue that was handed to us.
func (s *stage) delegated() (identifier string, t thread) {
	s.t.Helper()
	identifier = s.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Login test is flaky", Creator: "ada"})
	id, _ := s.Delegate(identifier, "ada")
	return identifier, thread{s.OrganizationID(), id, s.Issue(identifier).ID}
}

func (s *stage) gateway(next http.RoundTripper) *Performer {
	s.t.Helper()
	c := Config{
		Settings: Settings{ClientID: s.ClientID(), ClientSecret: config.NewSecret(s.ClientSecret()), APIURL: s.APIURL(), TokenURL: s.TokenURL()},
		Quota:    s.quota, Transport: next,
	}
	settings := c.Tokens()
	vault := &memory.Vault{}
	settings.Vault, settings.Locker, settings.Transport = vault, vault, next
	tokens, err := NewTokens(settings)
	if err != nil {
		s.t.Fatal(err)
	}
	c.Logger = slog.New(slog.DiscardHandler)
	return &Performer{app: newApp(c, tokens)}
}

// asked is a request from the stage's thread.
func (s *stage) asked() session.Request {
	return session.Request{ID: "r1", Thread: s.thread.session(), By: session.Person{Login: "ada"}, Verb: session.Instruct, Early: true}
}

// working is the state of a session in the middle of its first turn.
func (s *stage) working() session.State {
	return session.State{
		ID: s.thread.id(), Title: "Login test is flaky", Turns: 1,
		Repo:   session.Repo{Platform: "github", Name: "acme/widgets", Key: "k"},
		Branch: "ship/login-test", Base: "main",
		Threads: []session.Voice{{Thread: s.thread.session(), Talks: true, Shown: "working:1"}},
		Turn: &session.Turn{
			N: 1, Stage: session.Running, Model: "acme/large", Started: time.Now(), Requests: []session.Request{s.asked()},
			Progress: session.Progress{
				Doing: "bash: go test ./...", Steps: []string{"read: login_test.go", "bash: go test ./..."},
				Todos: []session.Todo{{Text: "Find the flake", Status: "completed"}, {Text: "Fix it", Status: "in_progress"}},
			},
		},
	}
}

// ended is the state of a session whose turn is over.
func (s *stage) ended(o session.Outcome) session.State {
	state := s.working()
	state.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7", Draft: true}
	t := state.Turn
	t.Stage, t.Outcome, t.Took, t.Changed, t.Files = session.Ended, &o, 720, true, 2
	return state
}

func completed() session.Outcome {
	return session.Outcome{Ending: session.Completed, Answer: "The test waits for the server now.", Usage: session.Usage{Calls: 3, USD: 0.5}}
}

// job makes one of an effect in the stage's thread.
func (s *stage) job(k session.EffectKind, state session.State) session.Job {
	thread := s.thread.session()
	return session.Job{
		Effect: session.Effect{ID: derived(string(k), s.t.Name()), Kind: k, By: Platform, Thread: &thread},
		State:  state, Latest: func() session.State { return state }, Progress: func(session.Progress) {},
	}
}

// do performs what must succeed.
func (s *stage) do(j session.Job) session.Performed {
	s.t.Helper()
	done, err := s.performer.Perform(s.t.Context(), j)
	if err != nil {
		s.t.Fatalf("%s: %v", j.Effect.Kind, err)
	}
	if done.Effect != j.Effect.ID {
		s.t.Errorf("%s: performed %q", j.Effect.Kind, done.Effect)
	}
	return done
}

// fails performs what must not succeed.
func (s *stage) fails(j session.Job) *session.Problem {
	s.t.Helper()
	_, err := s.performer.Perform(s.t.Context(), j)
	return problemOf(s.t, err)
}

// said is what we said so far, an activity a line.
func (s *stage) said() []string {
	var out []string
	for _, a := range s.Session(s.thread.agentSession).Activities {
		if a.By != "ship" {
			continue
		}
		text := string(a.Content.Type)
		if a.Ephemeral {
			text = "passing " + text
		}
		if a.Content.Type == ql.TypeAction {
			text += fmt.Sprintf(" %q %q", a.Content.Action, a.Content.Parameter)
		} else {
			text += ": " + strings.ReplaceAll(a.Content.Body, "\n\n", " / ")
		}
		if len(a.Signal) > 0 {
			text += fmt.Sprintf(" %s %s", a.Signal, a.Metadata)
		}
		out = append(out, text)
	}
	return out
}

// requests is how often Linear was asked anything but for a token.
func (s *stage) requests() int {
	n := 0
	for _, o := range operations {
		n += s.Calls(o)
	}
	return n
}

// drain leaves a share of the hour's allowance.
func (s *stage) drain(share float64) {
	s.t.Helper()
	left := [2]int64{int64(share * float64(limits[0])), int64(share * float64(limits[1]))}
	if err := s.quota.Tell(s.t.Context(), s.thread.organization, session.Rate{Limit: limits, Left: left, Window: window}); err != nil {
		s.t.Fatal(err)
	}
}
