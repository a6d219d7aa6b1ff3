package github

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	body := ` { "a" : {"b":[1,2,{"c":"}"}]}, "d":"x\"y\u00e9", "e":-1.5e+3 ,"f":null, "g" : [ ] } `
	if !members([]byte(body), func(name, value []byte) { got[string(name)] = string(value) }) {
		t.Fatal("not JSON")
	}
	want := map[string]string{"a": `{"b":[1,2,{"c":"}"}]}`, "d": `"x\"y\u00e9"`, "e": "-1.5e+3", "f": "null", "g": "[ ]"}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %q", got)
	}
}

// FuzzMembers: what is JSON and what is not, encoding/json decides.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `[]`, `"x"`, ` null `, `01`, `-`, `1.`, `1e`, `{"a":}`, `{"a" 1}`, `{"a":1,}`, `[1,]`, "\"\x01\"",
		`"\u12g4"`, `"\x"`, `{"a":"12345678\"87654321"}`, `{"a":"1234567` + "\x1f" + `"}`, `tru`, `{"a":1}{`, "\"é\xff\"", "",
		strings.Repeat("[", 10001) + strings.Repeat("]", 10001), strings.Repeat("[", 10000) + strings.Repeat("]", 10000),
		`"` + strings.Repeat("x", 7) + `\\"`, "{\"a\":\"\x80\xa2\xdc\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := members(body, func(name, value []byte) {
			if len(value) == 0 {
				t.Errorf("member %q has no value", name)
			}
		})
		if want := json.Valid(body); got != want {
			t.Errorf("members says %t of %q, encoding/json %t", got, body, want)
		}
	})
}

// FuzzReceive: whatever a signed body holds, receiving it neither panics nor
// makes a delivery that could not be stored.
func FuzzReceive(f *testing.F) {
	events := []string{"issue_comment", "pull_request_review_comment", "pull_request_review", "issues", "check_run", "pull_request"}
	for i := range events {
		f.Add(i, []byte(`{"action":"created","installation":{"id":1},"repository":{"id":2,"name":"widgets","owner":{"login":"acme"}},"issue":{"id":3,"number":4},"comment":{"id":5,"body":"/ship it"},"sender":{"login":"alice","id":6,"type":"User"}}`))
	}
	f.Add(4, []byte(`{"action":"rerequested","installation":{"id":1},"repository":{"id":2,"name":"widgets","owner":{"login":"acme"}},"check_run":{"id":9,"name":"ship","external_id":"gh.2.4","app":{"id":4242},"pull_requests":[{"number":4}]},"sender":{"login":"alice","id":6}}`))
	f.Add(5, []byte(`{"action":"closed","installation":{"id":1},"repository":{"id":2,"name":"widgets","owner":{"login":"acme"}},"pull_request":{"id":3,"head":{"ref":"ship/x-gh-2-4","repo":{"id":2}},"merged":true}}`))
	addExamples(f, events)
	r := newTestReceiver(f, secret)
	f.Fuzz(func(t *testing.T, event int, body []byte) {
		d := signed(events[uint(event)%uint(len(events))], string(body))
		got, err := r.Receive(t.Context(), d.Header, d.Body)
		if err != nil {
			return
		}
		for _, delivery := range got.Deliveries {
			if !validSession.MatchString(string(delivery.Session)) || len(delivery.Keys) != 2 {
				t.Errorf("session %q with keys %q", delivery.Session, delivery.Keys)
			}
			q := delivery.Event.Request
			if q == nil {
				continue
			}
			if _, err := parseThread(q.Thread.Key); err != nil {
				t.Error(err)
			}
			if _, err := parseRef(q.Ref); err != nil {
				t.Error(err)
			}
			if len(q.Text) > maxText || len(q.Quote) > maxQuote || q.Verb == "" {
				t.Errorf("request %+v", q)
			}
		}
	})
}

// addExamples adds GitHub's published examples, where they are to be had.
func addExamples(f *testing.F, events []string) {
	for i, event := range events {
		paths, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "webhooks", "github", event, "*.json"))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			body, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(i, body)
		}
	}
}
