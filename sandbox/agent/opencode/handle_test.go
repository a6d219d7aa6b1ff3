package opencode

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox"
	"ship/sandbox/agent"
)

func TestOpenIsIdempotentByTitle(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		s.srv.set(func() {
			twin := s.srv.sessions[0]
			twin.ID, twin.Time.Created = "ses_twin", 99
			longer := s.srv.sessions[0]
			longer.ID, longer.Title, longer.Time.Created = "ses_longer", "title of another", 0
			s.srv.sessions = append(s.srv.sessions, twin, longer)
		})
		if id, err := s.Open(t.Context(), "title"); id != s.ses || err != nil {
			t.Errorf("opened %q, %v; want %q", id, err, s.ses)
		}
	})
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		p := agent.Prompt{ID: "req:1_a", Text: "do", System: "be brief", Model: agent.Model{Provider: "acme", Name: "vendor/m2"}}
		for range 3 {
			if err := s.Prompt(t.Context(), s.ses, p); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{`{"messageID":"msg_ship_req_3a1_5fa","model":{"providerID":"ship-acme","modelID":"vendor/m2"},` +
			`"system":"be brief","parts":[{"id":"prt_ship_req_3a1_5fa","type":"text","text":"do"}]}`}
		if diff := cmp.Diff(want, s.srv.bodies["prompt"]); diff != "" {
			t.Error(diff)
		}
		if err := s.Prompt(t.Context(), "ses_other", p); !errors.Is(err, agent.ErrUnknown) {
			t.Errorf("unknown conversation: %v", err)
		}
		p.Model.Name = "m3"
		if err := s.Prompt(t.Context(), s.ses, p); !errors.Is(err, agent.ErrModel) {
			t.Errorf("unknown model: %v", err)
		}
	})
}

// TestNobodyAnswers: what waits for a person is refused once, and an entry that
// stays in the list does not stop a look.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		s.srv.set(func() {
			s.srv.statuses[s.ses] = wireStatus{Type: "busy"}
			s.srv.permissions = []wireAsk{{ID: "per_1"}, {ID: "per_stale"}}
			s.srv.questions = []map[string]any{{"id": "que_1", "questions": []any{map[string]any{}, map[string]any{}}}}
		})
		for range 3 {
			snap, err := s.Snapshot(t.Context(), s.ses, "p")
			if err != nil || snap.Refused != 3 {
				t.Fatalf("refused %d, %v", snap.Refused, err)
			}
		}
		reject := `{"message":"` + nobody + `","reply":"reject"}`
		want := []string{reject, reject, `{"answers":[["` + nobody + `"],["` + nobody + `"]]}`}
		if diff := cmp.Diff(want, s.srv.bodies["reply"]); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAbortWithoutAnswer: a server that does not listen is ended.
func TestAbortWithoutAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		if err := s.Abort(t.Context(), s.ses); err != nil {
			t.Fatal(err)
		}
		name := s.box.servers()[0]
		if !s.box.procs[name].Running {
			t.Fatal("the server was ended although it answered")
		}
		s.srv.set(func() { s.srv.sick = 500 })
		if err := s.Abort(t.Context(), s.ses); err != nil {
			t.Fatal(err)
		}
		last := s.box.spawned[len(s.box.spawned)-1]
		if s.box.procs[name].Running || last.Args[len(last.Args)-1] != marker {
			t.Errorf("the server still runs, or its tools were not swept: %v", last.Args)
		}
		s.box.lost = sandbox.ErrGone
		if err := s.Abort(t.Context(), s.ses); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("in a box that is gone: %v", err)
		}
	})
}

func TestErrorsOfTheClient(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		if _, err := s.Snapshot(t.Context(), "ses_unknown", "p"); !errors.Is(err, agent.ErrUnknown) {
			t.Errorf("unknown conversation: %v", err)
		}
		s.srv.set(func() { s.srv.sick = 503 })
		_, err := s.Snapshot(t.Context(), s.ses, "p")
		var api *apiError
		if !errors.As(err, &api) || api.Status != 503 || !strings.Contains(err.Error(), "not well") {
			t.Errorf("sick server: %v", err)
		}
		s.srv.set(func() { s.srv.sick = 0 })
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errLeave)
		if _, err := s.Snapshot(ctx, s.ses, "p"); !errors.Is(err, errLeave) || errors.Is(err, agent.ErrDown) {
			t.Errorf("the caller left: %v", err)
		}
		s.box.mu.Lock()
		s.box.conns = make(chan net.Conn) // accepts nobody
		s.box.mu.Unlock()
		s.client.Load().http.CloseIdleConnections()
		began := time.Now()
		if _, err := s.Snapshot(t.Context(), s.ses, "p"); !errors.Is(err, agent.ErrDown) {
			t.Errorf("silent server: %v", err)
		}
		if took := time.Since(began); took > answering+time.Second {
			t.Errorf("waited %s for a silent server", took)
		}
	})
}

func TestGarbageIsAnError(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		s.srv.set(func() { s.srv.messages[s.ses] = []string{`"text"`} })
		if _, err := s.Snapshot(t.Context(), s.ses, "p"); err == nil {
			t.Error("no error")
		}
	})
}

// TestHints: work is hinted, noise is not, and a stream that breaks or falls
// silent is read again.
func TestHints(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		ctx, cancel := context.WithCancelCause(t.Context())
		hints := s.Hints(ctx)
		hinted := func() bool {
			select {
			case _, ok := <-hints:
				return ok
			case <-time.After(time.Minute):
				return false
			}
		}
		for event, want := range map[string]bool{
			"server.heartbeat": false, "plugin.added": false, "message.part.delta": true, "session.idle": true,
		} {
			s.srv.events <- event
			if got := hinted(); got != want {
				t.Errorf("%s: hint %v, want %v", event, got, want)
			}
		}
		before, _ := s.Snapshot(t.Context(), s.ses, "p")
		s.srv.events <- "message.part.delta"
		hinted()
		after, _ := s.Snapshot(t.Context(), s.ses, "p")
		if before.Fingerprint == after.Fingerprint {
			t.Error("text that streams in does not count as work")
		}
		s.srv.events <- "" // the stream breaks
		s.srv.events <- "session.idle"
		if !hinted() {
			t.Error("no hint after the stream broke")
		}
		streams := s.srv.count("GET /event")
		time.Sleep(2 * silent)
		if s.srv.count("GET /event") <= streams {
			t.Error("a silent stream is not read again")
		}
		cancel(errLeave)
		for range hints { // closes
		}
	})
}

func TestEventType(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`data: {"id":"evt_1","type":"message.updated","properties":{"type":"x"}}`: "message.updated",
		`data: {"type":"server.connected","properties":{}}`:                       "server.connected",
		`data: {"properties":{"type":"session.idle"}}`:                            "",
		`: comment`: "",
		``:          "",
	} {
		if got := eventType([]byte(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		var got map[string]any
		if err := json.Unmarshal(s.box.files[configPath], &got); err != nil {
			t.Fatal(err)
		}
		options := map[string]any{
			"baseURL": "http://127.0.0.1:4010/broker/model/acme", "apiKey": "none",
			"timeout": false, "headerTimeout": 120000.0, "chunkTimeout": 120000.0,
		}
		provider := got["provider"].(map[string]any)["ship-acme"].(map[string]any)
		if diff := cmp.Diff(options, provider["options"]); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]any{"/work/repo/AGENTS.md"}, got["instructions"]); diff != "" {
			t.Error(diff)
		}
		server := s.box.spawned[len(s.box.spawned)-1]
		if server.Dir != sandbox.RepoDir || !strings.HasPrefix(strings.Join(server.Args, " "), "/opt/opencode serve") {
			t.Errorf("spawned %v in %s", server.Args, server.Dir)
		}
	})
}

func TestSetupThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*agent.Setup){
		"relative program": func(s *agent.Setup) { s.Program = "opencode" },
		"no provider":      func(s *agent.Setup) { s.Providers = nil },
		"no model":         func(s *agent.Setup) { s.Providers[0].Models = nil },
		"odd name":         func(s *agent.Setup) { s.Providers[0].Name = "a/b" },
	} {
		setup := testSetup()
		change(&setup)
		if _, err := (Driver{}).Start(t.Context(), newFakeBox(), setup); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
