package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/session"
	"ship/session/redis"
	"ship/session/redis/redistest"
)

// morgue is a store with dead letters, and the commands that look at it.
type morgue struct {
	*testing.T
	store  *redis.Store
	config string
}

const deadSecret = "s3cret-that-nobody-may-see"

func newMorgue(t *testing.T) *morgue {
	t.Helper()
	srv := redistest.Start(t)
	store, err := redis.Open(t.Context(), redis.Options{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	m := &morgue{T: t, store: store, config: filepath.Join(t.TempDir(), "ship.yaml")}
	text := fmt.Sprintf("redis: {url: %q}\nmodels: {acme: {base_url: \"https://models.example/v1\", api_key: %s, models: {large: {}}}}\n", srv.URL(), deadSecret)
	if err := os.WriteFile(m.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

// ship runs a command in this process.
func (m *morgue) ship(args ...string) (string, error) {
	m.Helper()
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(append(args, "--config", m.config))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(m.Context())
	if s := out.String() + fmt.Sprint(err); strings.Contains(s, deadSecret) {
		m.Errorf("ship %s shows a secret:\n%s", strings.Join(args, " "), s)
	}
	return out.String(), err
}

// wants runs a command that succeeds and prints each of words.
func (m *morgue) wants(words []string, args ...string) string {
	m.Helper()
	out, err := m.ship(args...)
	for _, w := range words {
		if err != nil || !strings.Contains(out, w) {
			m.Errorf("ship %s: %v; wanted %q:\n%s", strings.Join(args, " "), err, w, out)
		}
	}
	return out
}

// fails runs a command that does not succeed.
func (m *morgue) fails(word string, args ...string) string {
	m.Helper()
	out, err := m.ship(args...)
	if err == nil || !strings.Contains(err.Error()+out, word) {
		m.Errorf("ship %s: %v; wanted %q:\n%s", strings.Join(args, " "), err, word, out)
	}
	return out
}

// bury leaves a session in a state, with dead letters, oldest first, and
// returns their ids.
func (m *morgue) bury(state session.State, letters ...session.DeadLetter) []string {
	m.Helper()
	ctx := m.Context()
	_, err := m.store.Append(ctx, session.Delivery{
		Session: state.ID, Keys: []string{"test:" + string(state.ID)}, Keep: time.Hour, Event: session.Event{V: 1, Kind: session.Closed},
	})
	if err != nil {
		m.Fatal(err)
	}
	c, err := m.store.Claim(ctx, state.ID, "t", time.Minute)
	if err != nil {
		m.Fatal(err)
	}
	b, err := state.Encode()
	if err != nil {
		m.Fatal(err)
	}
	for i := range letters {
		letters[i].Session, letters[i].At = state.ID, time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC)
	}
	err = m.store.Commit(ctx, c.Lease, session.Commit{Cursor: 1, State: b, StateVersion: session.StateVersion, Release: true, Due: -1, Dead: letters})
	if err != nil {
		m.Fatal(err)
	}
	ids := make([]string, len(letters))
	for _, d := range m.letters() {
		if d.Session == state.ID {
			ids[d.At.Second()] = d.ID
		}
	}
	return ids
}

func (m *morgue) letters() []session.DeadLetter {
	m.Helper()
	dead, err := m.store.DeadLetters(m.Context(), 100)
	if err != nil {
		m.Fatal(err)
	}
	return dead
}

// inbox is what waits for a session.
func (m *morgue) inbox(id session.ID) []session.Event {
	m.Helper()
	c, err := m.store.Peek(m.Context(), id)
	if err != nil {
		m.Fatal(err)
	}
	return c.Events
}

func asking(text string) session.DeadLetter {
	return session.DeadLetter{Cause: "5 owners ended without progress: panic", Event: &session.Event{
		V: 1, Kind: session.Asked, Delivery: "d-1",
		Request: &session.Request{ID: "c1", Thread: session.Thread{Platform: "github", Key: "1/7"}, By: session.Person{Login: "alice"}, Verb: session.Instruct, Text: text},
	}}
}

func saying(text string) session.DeadLetter {
	thread := session.Thread{Platform: "github", Key: "1/7"}
	return session.DeadLetter{Cause: "post comment: 403: " + deadSecret, Effect: &session.Effect{
		ID: "5f3b", Kind: session.Say, By: "github", Thread: &thread, Text: text, Attempts: 2, Since: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC),
	}}
}

func turnStep(turn int) session.DeadLetter {
	return session.DeadLetter{Cause: "push: refused", Effect: &session.Effect{ID: "77aa", Kind: session.Publish, By: session.Worker, Turn: turn}}
}

// over is a session whose second turn has ended.
func over(id session.ID) session.State {
	thread := session.Thread{Platform: "github", Key: "1/7"}
	return session.State{
		ID: id, Turns: 2, Title: "Tests fail", Threads: []session.Voice{{Thread: thread}},
		Turn: &session.Turn{N: 2, Stage: session.Ended, Told: true, Requests: []session.Request{{Verb: session.Instruct, Text: "fix it"}}},
	}
}

// TestShowDeadLetter: what a person needs to know, and no secret.
func TestShowDeadLetter(t *testing.T) {
	t.Parallel()
	m := newMorgue(t)
	m.fails("no dead letter 1", "deliveries", "show", "1")
	raw := session.DeadLetter{Cause: "no event", Raw: []byte("{\"k\xff\x1b[2J" + deadSecret)}
	answer := session.DeadLetter{Cause: "no access", Turn: &session.Turn{N: 2, Outcome: &session.Outcome{Ending: session.Completed, Answer: "I fixed the parser."}},
		Effect: &session.Effect{ID: "9", Kind: session.Answer, By: "linear", Turn: 2}}
	ids := m.bury(over("gh.1.7"), asking("use "+deadSecret+" "+strings.Repeat("long ", 200)), saying("hello"), turnStep(1), raw, answer)

	m.wants(append([]string{"event asked", "say by github", "publish by worker", "no event", "gh.1.7", "2026-01-02T03:04:00Z"}, ids...), "deliveries", "list")
	out := m.wants([]string{ids[0], "event asked", "alice", "github 1/7", "instruct use [redacted]", "5 owners ended without progress: panic", "d-1", "`ship deliveries replay " + ids[0]},
		"deliveries", "show", ids[0])
	if len(out) > 1500 {
		t.Errorf("a long request is not cut:\n%s", out)
	}
	m.wants([]string{"say by github", "post comment: 403: [redacted]", "hello", "5f3b", "2026-01-02T03:00:00Z"}, "deliveries", "show", "4") // the newest is 1
	m.wants([]string{"Attempts", " 3\n"}, "deliveries", "show", "4")
	m.wants([]string{"no: it belonged to turn 1", "deliveries drop"}, "deliveries", "show", ids[2])
	if out := m.wants([]string{`{"k··[2J[redacted]`, "no: it is no event"}, "deliveries", "show", ids[3]); strings.ContainsRune(out, '\x1b') {
		t.Errorf("the terminal is commanded: %q", out)
	}
	m.wants([]string{"I fixed the parser.", "2, completed"}, "deliveries", "show", "1")
	for _, name := range []string{"0", "6", "07-1-1", "nonsense"} {
		m.fails("`ship deliveries list`", "deliveries", "show", name)
	}

	for _, id := range ids {
		var d struct {
			ID, Session string
			Raw         string
		}
		if err := json.Unmarshal([]byte(m.wants(nil, "deliveries", "show", "--json", id)), &d); err != nil || d.ID != id || d.Session != "gh.1.7" {
			t.Errorf("%+v, %v", d, err)
		}
	}
	m.wants([]string{`"raw": "{\"k` + "\ufffd" + `\u001b[2J[redacted]"`}, "deliveries", "show", "--json", ids[3])
}

// TestReplayDeadLetters: what can be replayed is in the inbox, once, and gone
// from the list. What cannot stays.
func TestReplayDeadLetters(t *testing.T) {
	t.Parallel()
	m := newMorgue(t)
	ids := m.bury(over("gh.1.7"), asking("first"), saying("second"), turnStep(1), turnStep(2))
	m.bury(over("gh.1.8"), asking("third"), saying("fourth"))
	for _, args := range [][]string{{}, {"--all", ids[0]}, {"--session", "gh.1.7", ids[0]}, {"--all", "--cause", "x"}} {
		m.fails("--all", append([]string{"deliveries", "replay"}, args...)...)
	}
	m.fails("no dead letter with the id 1", "deliveries", "replay", "1")
	m.wants([]string{"there is none"}, "deliveries", "replay", "--cause", "nothing of the kind")

	// The process before this one appended it and ended.
	letter, err := m.store.DeadLetter(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.store.Append(t.Context(), letter.Replay()); err != nil {
		t.Fatal(err)
	}
	m.wants([]string{ids[0] + ": gh.1.7: replayed event asked"}, "deliveries", "replay", ids[0])
	m.fails("no dead letter", "deliveries", "replay", ids[0])
	if got := m.inbox("gh.1.7"); len(got) != 1 || got[0].Request.Text != "first" || got[0].Request.ID == "c1" {
		t.Errorf("the inbox holds %+v", got)
	}

	out := m.fails("1 of 3 remain", "deliveries", "replay", "--session", "gh.1.7")
	if !strings.Contains(out, ids[2]+": gh.1.7: not replayed: it belonged to turn 1") {
		t.Errorf("why not, is not said:\n%s", out)
	}
	if got := m.inbox("gh.1.7"); len(got) != 3 || got[1].Effect.Text != "second" || got[2].Effect.Kind != session.Publish {
		t.Errorf("the inbox holds %+v", got)
	}
	m.wants([]string{"replayed say by github"}, "deliveries", "replay", "--cause", "403")
	if left := m.letters(); len(left) != 2 {
		t.Errorf("left: %+v", left)
	}
	m.fails("1 of 2 remain", "deliveries", "replay", "--all")
	m.wants([]string{"dropped publish by worker"}, "deliveries", "drop", ids[2])
	if left := m.letters(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	if got := m.inbox("gh.1.8"); len(got) != 2 || got[0].Effect == nil || got[1].Request.Text != "third" {
		t.Errorf("the other inbox holds %+v", got)
	}
}

// TestReplayIntoNothing: what a forgotten session was asked begins it anew;
// what it wanted to do does not.
func TestReplayIntoNothing(t *testing.T) {
	t.Parallel()
	m := newMorgue(t)
	m.bury(over("gh.1.7"), asking("first"), saying("second"))
	if err := m.store.Forget(t.Context(), "gh.1.7"); err != nil {
		t.Fatal(err)
	}
	m.fails("the session is forgotten", "deliveries", "replay", "--cause", "403")
	m.wants([]string{"replayed event asked"}, "deliveries", "replay", "--cause", "panic")
	if got := m.inbox("gh.1.7"); len(got) != 1 {
		t.Errorf("the inbox holds %+v", got)
	}
}

// TestExport: all that is kept of a session, and no secret.
func TestExport(t *testing.T) {
	t.Parallel()
	m := newMorgue(t)
	state := over("gh.1.7")
	state.Title = "Tests fail with " + deadSecret
	m.bury(state, saying("hello"), asking("fix it"))
	m.bury(over("gh.1.8"), saying("of another"))
	var want []string
	for i := range 450 {
		want = append(want, fmt.Sprintf("line %d `````", i))
	}
	if err := m.store.Write(t.Context(), "gh.1.7", append(want, "key: "+deadSecret)); err != nil {
		t.Fatal(err)
	}
	var e struct {
		Session     string
		State       session.State
		Transcript  []string
		DeadLetters []session.DeadLetter `json:"dead_letters"`
	}
	if err := json.Unmarshal([]byte(m.wants(nil, "sessions", "export", "gh.1.7")), &e); err != nil {
		t.Fatal(err)
	}
	if e.Session != "gh.1.7" || e.State.Turns != 2 || e.State.Title != "Tests fail with [redacted]" || len(e.Transcript) != 451 || len(e.DeadLetters) != 2 {
		t.Errorf("exported %+v", e)
	}
	out := m.wants([]string{"# Session gh.1.7", "Tests fail with [redacted]", "- Turn: 2, ended", "line 449", "Dead letter"}, "sessions", "export", "gh.1.7", "--markdown")
	if strings.Count(out, "\n``````\n") != 2 { // around the transcript, whose own fences are shorter
		t.Errorf("the transcript can end its fence:\n%.600s", out)
	}
	m.fails("`ship sessions list`", "sessions", "export", "gh.1.9")
	m.fails("sessions export ID", "sessions", "export")
}
