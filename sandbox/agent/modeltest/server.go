package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxRequest bounds what one request may hold, in bytes.
const maxRequest = 32 << 20

// Server is the model. It is an http.Handler; mount it anywhere, it answers
// every path that ends in /chat/completions or /models.
type Server struct {
	script Script

	mu   sync.Mutex
	seen []Request
}

// Request is what the server remembers of one call.
type Request struct {
	Model string
	// Step is how many answers the conversation had before: 0 is its start.
	Step   int
	Digest string
	// Authorization is the header as it came, for tests about tokens.
	Authorization string
	At            time.Time
	// User is the last thing that the user had said, System the system prompt.
	User   string
	System string
}

// Tally sums up requests.
type Tally struct {
	Requests int
	// Distinct conversations: a retry of the same one counts once.
	Distinct int
	// Starts are the requests at the very beginning of a conversation.
	Starts int
}

// New returns a model that answers by the script.
func New(script Script) *Server { return &Server{script: script} }

// Requests returns all calls so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Tally counts the calls to one model; the empty name counts all.
func (s *Server) Tally(model string) Tally {
	var t Tally
	digests := map[string]bool{}
	for _, r := range s.Requests() {
		if model != "" && r.Model != model {
			continue
		}
		t.Requests++
		digests[r.Digest] = true
		if r.Step == 0 {
			t.Starts++
		}
	}
	t.Distinct = len(digests)
	return t
}

// ServeHTTP answers a chat completion, streamed or whole, or the model list.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions") && r.Method == http.MethodPost:
		s.complete(w, r)
	case strings.HasSuffix(r.URL.Path, "/models") && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","data":[]}`)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	conv, stream, err := decode(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.remember(conv, r.Header.Get("Authorization"))
	reply := s.reply(conv)
	switch {
	case reply.fault == refuses:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(reply.code)
		fmt.Fprint(w, reply.body)
	case reply.fault == hangsAtOnce:
		<-r.Context().Done()
	case stream:
		newStream(w, r, conv).play(reply)
	default:
		writeWhole(w, conv, reply)
	}
}

func (s *Server) remember(c Conversation, authorization string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, Request{
		Model: c.Model, Step: c.Answers(), Digest: c.Digest,
		Authorization: authorization, At: time.Now(),
		User: c.LastUser(), System: c.System,
	})
}

// reply asks the script and makes its answer fit what the agent offers.
func (s *Server) reply(c Conversation) Reply {
	r := s.script(c)
	if len(r.Calls) == 0 {
		r.Text = noted(r.Text)
		return r
	}
	calls := make([]Call, 0, len(r.Calls))
	for i, call := range r.Calls {
		tool, ok := c.tool(call.Tool)
		if !ok {
			return Reply{Text: noted(fmt.Sprintf("The script wants the tool %q, which is not offered.", call.Tool))}
		}
		call = call.fit(tool)
		// The id depends on the conversation alone, so that a repeat is equal.
		call.id = fmt.Sprintf("call_%s_%d", c.Digest, i)
		calls = append(calls, call)
	}
	r.Calls = calls
	r.Text = noted(r.Text)
	return r
}

// writeWhole answers a request that did not ask for a stream.
func writeWhole(w http.ResponseWriter, c Conversation, r Reply) {
	message := map[string]any{"role": "assistant", "content": r.Text}
	if len(r.Calls) > 0 {
		message["tool_calls"] = wireCalls(r.Calls)
	}
	w.Header().Set("Content-Type", "application/json")
	// An error here means that the reader left, which is its right.
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "chatcmpl-" + c.Digest, "object": "chat.completion", "model": c.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": r.finish()}},
		"usage":   r.Usage.wire(),
	})
}

func (r Reply) finish() string {
	if len(r.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func wireCalls(calls []Call) []any {
	out := make([]any, 0, len(calls))
	for i, c := range calls {
		out = append(out, map[string]any{
			"index": i, "id": c.id, "type": "function",
			"function": map[string]any{"name": c.Tool, "arguments": c.arguments()},
		})
	}
	return out
}

func (u Usage) wire() map[string]any {
	if u == (Usage{}) {
		u = Usage{Input: 100, Output: 20}
	}
	return map[string]any{
		"prompt_tokens": u.Input + u.Cached, "completion_tokens": u.Output,
		"total_tokens":          u.Input + u.Cached + u.Output,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.Cached},
	}
}
