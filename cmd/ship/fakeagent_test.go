package main

import (
	"encoding/json"
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
// that it hears twice adds two.
type fakeAgent struct {
	mu       sync.Mutex
	sessions []map[string]any
	messages []map[string]any
	seen     map[string]bool
	busy     int
	work     time.Duration
}

// fakeAgentMain serves until it is killed. Its arguments are those of
// `opencode serve`.
func fakeAgentMain(args []string) {
	fs := flag.NewFlagSet("serve", flag.ExitOnError)
	host, port := fs.String("hostname", "", ""), fs.String("port", "", "")
	_ = fs.Parse(args)
	a := &fakeAgent{seen: map[string]bool{}, work: 1500 * time.Millisecond}
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
	mux.HandleFunc("POST /session/{id}/abort", func(w http.ResponseWriter, _ *http.Request) { reply(w, true) })
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
	go a.answer(in.MessageID, text)
}

// add appends a message; the lock is held.
func (a *fakeAgent) add(id, role, finish string, parts []any) {
	if parts == nil {
		parts = []any{}
	}
	a.messages = append(a.messages, map[string]any{"parts": parts, "info": map[string]any{
		"id": id, "role": role, "finish": finish, "time": map[string]any{"created": len(a.messages) + 1, "completed": len(a.messages) + 1},
	}})
}

// answer works for a while and leaves a line in the repository.
func (a *fakeAgent) answer(id, text string) {
	time.Sleep(a.work)
	line, _, _ := strings.Cut(text, "\n")
	f, err := os.OpenFile("WORK.md", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		_ = f.Close()
	}
	said := "Did: " + line
	if err != nil {
		said = err.Error()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy--
	a.add("msg_answer_"+id, "assistant", "stop", []any{map[string]any{"id": "p", "type": "text", "text": said}})
}
