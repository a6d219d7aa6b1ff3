package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// fakeAgent is a small coding agent that speaks the part of OpenCode's HTTP API
// that the driver uses. The sweeps start it in real boxes in place of the real
// one, which takes a minute of a small machine for what this does in a second.
// It works without a model: each prompt adds a line to a file, and a prompt
// that it hears twice adds two. Of a prompt's first line it understands a word:
// with "SLOWLY" it works until it is stopped, with "TAKING 6s" for so long, with
// "WHY" it only answers, with "FAIL" its model refuses, with "PLAN" it keeps a
// list, with "COMMIT" it commits its work and names the commit, with "ASK" it
// ends with a question, with "SPILL" it tells all it knows, with "FILL" it
// leaves no room on the disk, and with "HOG" not even what ship reserves there,
// after it has committed a line.
type fakeAgent struct {
	mu       sync.Mutex
	sessions []map[string]any
	messages []map[string]any
	seen     map[string]bool
	busy     int
	work     time.Duration
	// aborted is closed when what is under way is to end.
	aborted chan struct{}
}

// fakeAgentMain serves until it is killed. Its arguments are those of
// `opencode serve`.
func fakeAgentMain(args []string) {
	fs := flag.NewFlagSet("serve", flag.ExitOnError)
	host, port := fs.String("hostname", "", ""), fs.String("port", "", "")
	_ = fs.Parse(args)
	a := &fakeAgent{seen: map[string]bool{}, aborted: make(chan struct{}), work: 1500 * time.Millisecond}
	fmt.Printf("opencode server listening on http://%s:%s\n", *host, *port)
	fmt.Fprintln(os.Stderr, http.ListenAndServe(*host+":"+*port, a.handler()))
	os.Exit(1)
}

func (a *fakeAgent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /global/health", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"healthy": true, "version": "fake"})
	})
	mux.HandleFunc("GET /session", func(w http.ResponseWriter, _ *http.Request) { a.list(w, &a.sessions) })
	mux.HandleFunc("POST /session", a.open)
	mux.HandleFunc("GET /session/status", a.status)
	mux.HandleFunc("GET /session/{id}/message", func(w http.ResponseWriter, _ *http.Request) { a.list(w, &a.messages) })
	mux.HandleFunc("GET /session/{id}/message/{message}", a.message)
	mux.HandleFunc("POST /session/{id}/prompt_async", a.prompt)
	mux.HandleFunc("POST /session/{id}/abort", a.abort)
	for _, empty := range []string{"GET /permission", "GET /question", "GET /session/{id}/children"} {
		mux.HandleFunc(empty, func(w http.ResponseWriter, _ *http.Request) { reply(w, []string{}) })
	}
	mux.HandleFunc("GET /global/event", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	return mux
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (a *fakeAgent) list(w http.ResponseWriter, items *[]map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *items == nil {
		*items = []map[string]any{}
	}
	reply(w, *items)
}

func (a *fakeAgent) open(w http.ResponseWriter, r *http.Request) {
	var in struct{ Title string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	a.mu.Lock()
	defer a.mu.Unlock()
	s := map[string]any{"id": fmt.Sprintf("ses_%d", len(a.sessions)+1), "title": in.Title, "time": map[string]any{"created": 1}}
	a.sessions = append(a.sessions, s)
	reply(w, s)
}

func (a *fakeAgent) status(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]any{}
	if a.busy > 0 {
		out["ses_1"] = map[string]any{"type": "busy"}
	}
	reply(w, out)
}

func (a *fakeAgent) message(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.seen[r.PathValue("message")] {
		http.Error(w, `{"name":"NotFoundError","data":{"message":"no such message"}}`, http.StatusNotFound)
		return
	}
	reply(w, map[string]any{"info": map[string]any{"id": r.PathValue("message"), "role": "user"}, "parts": []any{}})
}

func (a *fakeAgent) prompt(w http.ResponseWriter, r *http.Request) {
	var in struct {
		MessageID string `json:"messageID"`
		Parts     []struct{ Text string }
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	a.mu.Lock()
	defer a.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
	if a.seen[in.MessageID] {
		return
	}
	a.seen[in.MessageID] = true
	a.add(in.MessageID, "user", "", nil)
	a.busy++
	text := ""
	for _, p := range in.Parts {
		text += p.Text
	}
	go a.answer(in.MessageID, text, a.aborted)
}

func (a *fakeAgent) abort(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.aborted)
	a.aborted = make(chan struct{})
	reply(w, true)
}

// add appends a message; the lock is held.
func (a *fakeAgent) add(id, role, finish string, parts []any) map[string]any {
	if parts == nil {
		parts = []any{}
	}
	info := map[string]any{
		"id": id, "role": role, "finish": finish, "time": map[string]any{"created": len(a.messages) + 1, "completed": len(a.messages) + 1},
	}
	a.messages = append(a.messages, map[string]any{"parts": parts, "info": info})
	return info
}

// answer works for a while and leaves a line in the repository.
func (a *fakeAgent) answer(id, text string, aborted <-chan struct{}) {
	line, _, _ := strings.Cut(text, "\n")
	said := "Did: " + line
	var failure map[string]any
	var parts []any
	if strings.Contains(line, "PLAN") {
		a.mu.Lock()
		a.add("msg_plan_"+id, "assistant", "tool-calls", []any{plan("in_progress")})
		a.mu.Unlock()
		parts = append(parts, plan("completed"))
	}
	reason := "no"
	if strings.Contains(line, "SPILL") {
		parts, said = spill()
		reason = said
	}
	select {
	case <-aborted:
		failure = map[string]any{"name": "MessageAbortedError", "data": map[string]any{}}
	case <-a.worked(line):
	}
	switch {
	case failure != nil || strings.Contains(line, "WHY"):
	case strings.Contains(line, "FAIL"):
		failure = map[string]any{"name": "APIError", "data": map[string]any{"message": reason, "statusCode": 400}}
	default:
		if strings.Contains(line, "HOG") {
			said += "\n\n" + commitAndHog(line)
		}
		if err := leave(line); err != nil {
			said = err.Error()
		} else if strings.Contains(line, "COMMIT") {
			said += "\n\n" + commitWork(line)
		}
		if strings.Contains(line, "FILL") || strings.Contains(line, "HOG") {
			said += "\n\n" + takeAllRoom("../ballast").Error()
		}
	}
	if strings.Contains(line, "ASK") {
		said += "\n\n```ask\nWhich colour?\n- Red\n- Blue\n```"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy--
	parts = append(parts, map[string]any{"id": "p", "type": "text", "text": said})
	info := a.add("msg_answer_"+id, "assistant", "stop", parts)
	if failure != nil {
		info["error"] = failure
	}
}

// plan is the call by which the agent keeps its list.
func plan(status string) any {
	todos := []any{map[string]any{"content": "Oil them", "status": status}}
	return map[string]any{
		"id": "t", "type": "tool", "tool": "todowrite", "callID": "c",
		"state": map[string]any{"status": "completed", "input": map[string]any{"todos": todos}},
	}
}

// worked is when the work on a line is done. What takes long leaves a line at
// its start too, which shows how often it was begun.
func (a *fakeAgent) worked(line string) <-chan time.Time {
	_, rest, long := strings.Cut(line, "TAKING ")
	if !long && !strings.Contains(line, "SLOWLY") {
		return time.After(a.work)
	}
	_ = leave("began: " + line) // the test sees that it is missing
	if !long {
		return nil
	}
	d, _ := time.ParseDuration(strings.Fields(rest + " 0s")[0])
	return time.After(d)
}

// takeAllRoom writes until there is no room left, and returns what it heard then.
func takeAllRoom(path string) error {
	f, err := os.Create(path)
	for chunk := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(chunk)
	}
	for chunk := []byte("0123456789abcdef"); f != nil; { // the last of it
		if _, err := f.Write(chunk); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return err
}

// leave writes a line down in the repository.
func leave(line string) error {
	f, err := os.OpenFile("WORK.md", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}
