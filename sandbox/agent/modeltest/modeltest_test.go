package modeltest_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	. "ship/sandbox/agent/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a model and returns how to ask it.
func serve(t *testing.T, script Script) (*Server, func(body string) *http.Response) {
	t.Helper()
	model := New(script)
	web := httptest.NewServer(model)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		web.Client().CloseIdleConnections()
	})
	return model, func(body string) *http.Response {
		t.Helper()
		resp, err := web.Client().Post(web.URL+"/broker/model/x/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
}

// said is what a stream amounts to.
type said struct {
	Text, Finish, Tool, Arguments, CallID string
	Tokens                                int
	Chunks                                int
	Done                                  bool
}

// listen reads a stream to its end, as a client does.
func listen(t *testing.T, body io.Reader) (said, error) {
	t.Helper()
	var out said
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			out.Done = true
			continue
		}
		out.take(t, data)
	}
	return out, lines.Err()
}

func (s *said) take(t *testing.T, data string) {
	t.Helper()
	var chunk struct {
		Choices []struct {
			Delta struct {
				Content   string
				ToolCalls []struct {
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			Total int `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(data), &chunk); err != nil {
		t.Fatalf("chunk %s: %v", data, err)
	}
	s.Chunks++
	s.Tokens += chunk.Usage.Total
	for _, c := range chunk.Choices {
		s.Text += c.Delta.Content
		s.Finish += c.FinishReason
		for _, call := range c.Delta.ToolCalls {
			s.Tool += call.Function.Name
			s.Arguments += call.Function.Arguments
			s.CallID += call.ID
		}
	}
}

const (
	start = `{"model":"m","stream":true,"messages":[{"role":"system","content":"be good"},{"role":"user","content":[{"type":"text","text":"hello"}]}],
		"tools":[{"type":"function","function":{"name":"bash","parameters":{"required":["command","description"],"properties":{"command":{"type":"string"},"description":{"type":"string"}}}}}]}`
	later = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"},
		{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"a b"}]}`
)

func TestSteps(t *testing.T) {
	t.Parallel()
	model, ask := serve(t, Steps(Use(Bash("ls -l /some/where/quite/long")), Say("That was %s, in several chunks of the stream.", "it")))
	first, err := listen(t, ask(start).Body)
	if err != nil {
		t.Fatal(err)
	}
	want := said{
		Finish: "tool_calls", Tool: "bash", Tokens: 120, Done: true, CallID: first.CallID, Chunks: first.Chunks,
		Arguments: `{"command":"ls -l /some/where/quite/long","description":"scripted bash"}`,
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	second, err := listen(t, ask(later).Body)
	if err != nil {
		t.Fatal(err)
	}
	if second.Text != "That was it, in several chunks of the stream.\n\n"+Note || second.Finish != "stop" || second.Chunks < 6 {
		t.Errorf("said %+v", second)
	}
	again, err := listen(t, ask(start).Body)
	if diff := cmp.Diff(first, again); diff != "" || err != nil {
		t.Errorf("the same conversation got another answer: %s %v", diff, err)
	}
	if got := model.Tally("m"); got != (Tally{Requests: 3, Distinct: 2, Starts: 2}) {
		t.Errorf("tally %+v", got)
	}
	if r := model.Requests()[0]; r.User != "hello" || r.System != "be good" || r.Step != 0 {
		t.Errorf("remembers %+v", r)
	}
	over, err := listen(t, ask(strings.Replace(later, `{"role":"tool"`, `{"role":"assistant","content":"x"},{"role":"tool"`, 1)).Body)
	if err != nil || !strings.Contains(over.Text, "over after 2 steps") {
		t.Errorf("after the end: %+v, %v", over, err)
	}
}

func TestWholeAnswer(t *testing.T) {
	t.Parallel()
	_, ask := serve(t, Always(Say("hi").Costing(Usage{Input: 5, Cached: 3, Output: 2})))
	var out struct {
		Choices []struct {
			Message struct{ Content string }
		}
		Usage map[string]any
	}
	if err := json.NewDecoder(ask(strings.Replace(start, `"stream":true,`, "", 1)).Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	if got := out.Choices[0].Message.Content; got != "hi\n\n"+Note {
		t.Errorf("said %q", got)
	}
	want := map[string]any{"prompt_tokens": 8.0, "completion_tokens": 2.0, "total_tokens": 10.0, "prompt_tokens_details": map[string]any{"cached_tokens": 3.0}}
	if diff := cmp.Diff(want, out.Usage); diff != "" {
		t.Error(diff)
	}
}

func TestNoteStaysWhereTheScriptHasPutIt(t *testing.T) {
	t.Parallel()
	const text = Note + "\n\nAnd the last word."
	_, ask := serve(t, Always(Say(text)))
	if got, err := listen(t, ask(start).Body); err != nil || got.Text != text {
		t.Errorf("said %q, %v", got.Text, err)
	}
}

func TestToolThatIsNotOffered(t *testing.T) {
	t.Parallel()
	_, ask := serve(t, Always(Use(Write("a", "b"))))
	got, err := listen(t, ask(start).Body)
	if err != nil || got.Tool != "" || !strings.Contains(got.Text, `"write"`) || !strings.Contains(got.Text, Note) {
		t.Errorf("said %+v, %v", got, err)
	}
}

func TestMisbehaviour(t *testing.T) {
	t.Parallel()
	_, ask := serve(t, ByModel(map[string]Script{
		"busy": Always(Fail(503, "overloaded", "later")),
		"cut":  Always(Cut("I think")),
		"slow": Always(Say("x").Slowly(20 * time.Millisecond)),
	}))
	with := func(model string) *http.Response {
		return ask(strings.Replace(start, `"m"`, `"`+model+`"`, 1))
	}
	if resp := with("busy"); resp.StatusCode != 503 {
		t.Errorf("status %d", resp.StatusCode)
	}
	if resp := with("unknown"); resp.StatusCode != 404 {
		t.Errorf("status %d", resp.StatusCode)
	}
	if got, err := listen(t, with("cut").Body); err == nil || got.Done || !strings.HasPrefix(got.Text, "I think") {
		t.Errorf("cut stream: %+v, %v", got, err)
	}
	began := time.Now()
	if got, err := listen(t, with("slow").Body); err != nil || !got.Done || time.Since(began) < 60*time.Millisecond {
		t.Errorf("slow stream: %+v, %v after %s", got, err, time.Since(began))
	}
}

// TestHanging: nothing comes, until the client leaves.
func TestHanging(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]Reply{"at once": Hang(), "inside": HangIn("I think")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := make(chan struct{})
			model := New(Always(reply))
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(left)
				model.ServeHTTP(w, r)
			}))
			t.Cleanup(web.Close)
			client := &http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Post(web.URL+"/chat/completions", "application/json", strings.NewReader(start))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Error("it answered")
			}
			<-left
		})
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	var got Conversation
	_, ask := serve(t, func(c Conversation) Reply { got = c; return Say("ok") })
	if _, err := listen(t, ask(later).Body); err != nil {
		t.Fatal(err)
	}
	if got.Answers() != 1 || got.LastUser() != "hello" || got.Offers("bash") {
		t.Errorf("conversation %+v", got)
	}
	if diff := cmp.Diff([]string{"a b"}, got.Results()); diff != "" {
		t.Error(diff)
	}
	if call := got.Messages[1].Calls[0]; call.Tool != "bash" || call.Args["command"] != "ls" {
		t.Errorf("call %+v", call)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		call Call
		want map[string]any
	}{
		{Edit("f", "a", "b"), map[string]any{"filePath": "f", "oldString": "a", "newString": "b"}},
		{Read("f"), map[string]any{"filePath": "f"}},
		{Todos(Todo{Text: "x", Status: "pending"}), map[string]any{"todos": []any{
			map[string]any{"id": "1", "content": "x", "status": "pending", "priority": "medium"},
		}}},
	} {
		if diff := cmp.Diff(tt.want, tt.call.Args); diff != "" {
			t.Error(diff)
		}
	}
	seen := map[any]bool{}
	script := Endless(func(n int) Call { return Bash(strings.Repeat("x", n+1)) })
	for n := range 3 {
		messages := make([]Message, n)
		for i := range messages {
			messages[i].Role = "assistant"
		}
		seen[script(Conversation{Messages: messages}).Calls[0].Args["command"]] = true
	}
	if len(seen) != 3 {
		t.Errorf("an endless script repeats itself: %v", seen)
	}
}

// FuzzServer: no request brings the model down.
func FuzzServer(f *testing.F) {
	f.Add(start)
	f.Add(later)
	f.Add(`{"messages":[null,{"content":{}},{"tool_calls":[{}]}],"tools":[{"function":{"parameters":{"required":["a"],"properties":{"a":{"type":["string"]}}}}}]}`)
	model := New(Always(Use(Bash("ls"))))
	f.Fuzz(func(t *testing.T, body string) {
		w := httptest.NewRecorder()
		model.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/chat/completions", strings.NewReader(body)))
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("status %d", w.Code)
		}
	})
}

func TestOtherPaths(t *testing.T) {
	t.Parallel()
	model := New(Always(Say("x")))
	for path, want := range map[string]int{"/v1/models": 200, "/nothing": 404} {
		w := httptest.NewRecorder()
		model.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
}
