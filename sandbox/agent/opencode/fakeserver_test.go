package opencode

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fakeServer speaks OpenCode's HTTP API from memory.
type fakeServer struct {
	mux *http.ServeMux

	mu       sync.Mutex
	password string // empty: any
	sessions []wireSession
	children map[string][]wireSession
	statuses map[string]wireStatus
	// messages of each session, as JSON, oldest first.
	messages    map[string][]string
	permissions []wireAsk
	questions   []map[string]any
	// sick answers every call with this status.
	sick int
	// slow delays every answer.
	slow time.Duration
	// calls counts requests by method and path.
	calls  map[string]int
	bodies map[string][]string
	events chan string
}

func newFakeServer() *fakeServer {
	s := &fakeServer{
		mux: http.NewServeMux(), children: map[string][]wireSession{}, statuses: map[string]wireStatus{},
		messages: map[string][]string{}, calls: map[string]int{}, bodies: map[string][]string{},
		events: make(chan string),
	}
	s.mux.HandleFunc("GET /global/health", s.json(func(*http.Request) any {
		return map[string]any{"healthy": true, "version": "1.18.33"}
	}))
	s.mux.HandleFunc("GET /session/status", s.json(func(*http.Request) any { return s.statuses }))
	s.mux.HandleFunc("GET /session", s.json(s.listSessions))
	s.mux.HandleFunc("POST /session", s.json(s.makeSession))
	s.mux.HandleFunc("GET /session/{id}/children", s.json(func(r *http.Request) any { return s.children[r.PathValue("id")] }))
	s.mux.HandleFunc("GET /session/{id}/message", s.listMessages)
	s.mux.HandleFunc("GET /session/{id}/message/{message}", s.getMessage)
	s.mux.HandleFunc("POST /session/{id}/prompt_async", s.prompt)
	s.mux.HandleFunc("POST /session/{id}/abort", s.json(func(*http.Request) any { return true }))
	s.mux.HandleFunc("GET /permission", s.json(func(*http.Request) any { return s.permissions }))
	s.mux.HandleFunc("GET /question", s.json(func(*http.Request) any { return s.questions }))
	s.mux.HandleFunc("POST /permission/{id}/reply", s.reply)
	s.mux.HandleFunc("POST /question/{id}/reply", s.reply)
	s.mux.HandleFunc("GET /event", s.stream)
	return s
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls[r.Method+" "+r.URL.Path]++
	sick, slow, password := s.sick, s.slow, s.password
	s.mu.Unlock()
	time.Sleep(slow)
	if _, given, _ := r.BasicAuth(); password != "" && given != password {
		sick = http.StatusUnauthorized
	}
	if sick != 0 {
		http.Error(w, `{"name":"Sick","data":{"message":"not well"}}`, sick)
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *fakeServer) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

// set changes the server's state.
func (s *fakeServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *fakeServer) json(answer func(*http.Request) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		// The reader may have left.
		_ = json.NewEncoder(w).Encode(answer(r))
	}
}

func (s *fakeServer) listSessions(r *http.Request) any {
	out := []wireSession{}
	for _, sess := range s.sessions {
		if strings.Contains(sess.Title, r.URL.Query().Get("search")) {
			out = append(out, sess)
		}
	}
	return out
}

func (s *fakeServer) makeSession(r *http.Request) any {
	var in wireSession
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil
	}
	in.ID = fmt.Sprint("ses_", len(s.sessions)+1)
	in.Time.Created = int64(len(s.sessions) + 1)
	s.sessions = append(s.sessions, in)
	s.messages[in.ID] = []string{}
	return in
}

func notFound(w http.ResponseWriter) {
	http.Error(w, `{"name":"NotFoundError","data":{"message":"not found"}}`, http.StatusNotFound)
}

func (s *fakeServer) listMessages(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, ok := s.messages[r.PathValue("id")]
	if !ok {
		notFound(w)
		return
	}
	if before, err := strconv.Atoi(r.URL.Query().Get("before")); err == nil {
		all = all[:before]
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		limit = len(all)
	}
	if from := len(all) - limit; from > 0 {
		w.Header().Set("X-Next-Cursor", strconv.Itoa(from))
		all = all[from:]
	}
	fmt.Fprint(w, "[", strings.Join(all, ","), "]")
}

func (s *fakeServer) getMessage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages[r.PathValue("id")] {
		if strings.Contains(m, `"`+r.PathValue("message")+`"`) {
			fmt.Fprint(w, m)
			return
		}
	}
	notFound(w)
}

func (s *fakeServer) prompt(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	if _, ok := s.messages[id]; !ok {
		notFound(w)
		return
	}
	var p wirePrompt
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b, _ := json.Marshal(p)
	s.bodies["prompt"] = append(s.bodies["prompt"], string(b))
	s.messages[id] = append(s.messages[id], userJSON(p.MessageID))
	w.WriteHeader(http.StatusNoContent)
}

func (s *fakeServer) reply(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.bodies["reply"] = append(s.bodies["reply"], string(body))
	if strings.Contains(r.URL.Path, "stale") {
		notFound(w)
		return
	}
	fmt.Fprint(w, "true")
}

// stream sends what comes through the channel; the empty string ends it.
func (s *fakeServer) stream(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-s.events:
			if e == "" {
				return
			}
			fmt.Fprintf(w, "data: {\"id\":\"evt_1\",\"type\":%q,\"properties\":{}}\n\n", e)
			w.(http.Flusher).Flush()
		}
	}
}

// The messages, as OpenCode writes them.

func userJSON(id string) string {
	return fmt.Sprintf(`{"info":{"id":%q,"role":"user","time":{"created":1},"summary":{"diffs":[]}},"parts":[{"id":"prt_%s","type":"text","text":"words"}]}`, id, id)
}

// answerJSON is an assistant message; more goes into its info, parts are whole.
func answerJSON(id, more string, parts ...string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"info":{"id":%q,"role":"assistant","time":{"created":5,"completed":6},"cost":0.01,`+
		`"tokens":{"input":10,"output":5,"reasoning":1,"cache":{"read":3,"write":2}}%s},"parts":[%s]}`,
		id, more, strings.Join(parts, ","))
}

func textJSON(text string) string { return fmt.Sprintf(`{"id":"prt_t","type":"text","text":%q}`, text) }

func toolJSON(tool, status, input, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"id":"prt_%s","type":"tool","callID":"call_1","tool":%q,"state":{"status":%q,"input":%s%s}}`,
		tool, tool, status, input, more)
}

const (
	stopped   = `"finish":"stop"`
	continues = `"finish":"tool-calls"`
)
