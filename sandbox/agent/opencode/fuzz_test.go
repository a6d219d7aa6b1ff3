package opencode

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"ship/sandbox/agent"
)

// FuzzMessages: whatever a server sends, a snapshot of it makes sense.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`[]`, `null`, `[null]`, `[{}]`, `[{"info":{"role":"assistant","finish":"stop"}}]`,
		"[" + userJSON("msg_ship_p") + "," + answerJSON("msg_1", stopped, textJSON("hi")) + "]",
		"[" + answerJSON("msg_1", continues, toolJSON("bash", "completed", `{"command":"x"}`, `"metadata":{"exit":1e300}`)) + "]",
		"[" + answerJSON("msg_1", `"error":{"name":"APIError","data":{"responseBody":"{\"error\":{\"code\":7}}"}}`) + "]",
		"[" + answerJSON("msg_1", "", toolJSON("todowrite", "pending", `{"todos":[{"content":"\ud800"}]}`, "")) + "]",
		"[" + userJSON("msg_ship__zz_4") + "]",
	} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, isIdle bool) {
		list, err := decodeMessages(body)
		if err != nil {
			return
		}
		st := agent.Status{Phase: agent.Busy}
		if isIdle {
			st.Phase = agent.Idle
		}
		s := summarize(transcript{found: true}.extend(list), st)
		if s.Finished && s.Cut || (s.Finished || s.Cut) && (!isIdle || !s.Started) {
			t.Errorf("contradiction: %+v", s)
		}
		if !s.Finished && (s.Failure != nil || s.Aborted) || s.Usage.Calls > len(list) {
			t.Errorf("contradiction: %+v", s)
		}
		for _, text := range append(texts(s), s.Text) {
			if len(text) > maxText || !utf8.ValidString(text) {
				t.Errorf("text of %d bytes, valid %v", len(text), utf8.ValidString(text))
			}
		}
	})
}

func texts(s agent.Snapshot) []string {
	var out []string
	for _, c := range s.Calls {
		out = append(out, c.Title, c.Command, c.Error)
	}
	for _, t := range s.Todos {
		out = append(out, t.Text)
	}
	return out
}

func FuzzIDs(f *testing.F) {
	for _, seed := range []string{"", "req-1.a", "req:1_a", "_", "_5f", "ü/ \x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		enc := encodeID(id)
		if decodeID(enc) != id {
			t.Errorf("%q became %q and then %q", id, enc, decodeID(enc))
		}
		if strings.ContainsFunc(enc, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", r)
		}) {
			t.Errorf("%q became %q", id, enc)
		}
	})
}

func FuzzEventType(f *testing.F) {
	f.Add([]byte(`data: {"id":"evt_1","type":"message.updated","properties":{}}`))
	f.Add([]byte(`data: {"type":"`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if kind := eventType(line); kind != "" && !strings.Contains(string(line), kind) {
			t.Errorf("%q from %q", kind, line)
		}
	})
}

func FuzzFailureCode(f *testing.F) {
	f.Add(`{"error":{"code":"ship_budget_spent"}}`)
	f.Add(`ship_calls_spent`)
	f.Add(`{"code":"x"}`)
	f.Add(`{"error":[]}`)
	f.Fuzz(func(t *testing.T, body string) {
		code := failureCode(body)
		if len(code) > maxTitle {
			t.Errorf("code of %d bytes", len(code))
		}
		if json.Valid([]byte(body)) && code != "" && !utf8.ValidString(code) {
			t.Errorf("code %q", code)
		}
	})
}
