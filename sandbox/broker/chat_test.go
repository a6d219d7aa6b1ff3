package broker

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseChat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in, body string
		output   int
	}{
		"plain":            {`{"model":"m","messages":[]}`, `{"messages":[],"model":"m"}`, assumedOutput},
		"content is kept":  {`{"model":"m","messages":[{"content":"<a> \u00e9 & 1e5"}],"x":1.0}`, `{"messages":[{"content":"<a> \u00e9 & 1e5"}],"model":"m","x":1.0}`, assumedOutput},
		"stream":           {`{"model":"m","stream":true}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, assumedOutput},
		"wants no usage":   {`{"model":"m","stream":true,"stream_options":{"include_usage":false,"a":1}}`, `{"model":"m","stream":true,"stream_options":{"a":1,"include_usage":true}}`, assumedOutput},
		"null options":     {`{"model":"m","stream":true,"stream_options":null}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, assumedOutput},
		"options, no flow": {`{"model":"m","stream":false,"stream_options":{}}`, `{"model":"m","stream":false}`, assumedOutput},
		"the last counts":  {`{"model":"a","model":"b"}`, `{"model":"b"}`, assumedOutput},
		"limits":           {`{"model":"m","max_tokens":5,"max_completion_tokens":100,"n":3}`, `{"max_completion_tokens":100,"max_tokens":5,"model":"m","n":3}`, 300},
		"absurd limits":    {`{"model":"m","max_tokens":1e300,"n":1e300}`, `{"max_tokens":1e300,"model":"m","n":1e300}`, maxTokens},
	} {
		got, err := parseChat([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.body, string(got.body)); diff != "" || got.output != c.output {
			t.Errorf("%s: output %d, body %s", name, got.output, diff)
		}
	}
}

func TestParseChatRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, `null`, `[]`, `{`, `"m"`, `{"messages":[]}`, `{"model":""}`, `{"model":7}`, `{"model":["m"]}`, `{"model":null}`,
		`{"model":"m","MODEL":"dear"}`, `{"model":"m","Stream":true}`, `{"model":"m","ſtream":true}`, `{"model":"m","stream":"yes"}`,
		`{"model":"m","stream":true,"stream_options":7}`, `{"model":"m","models":["dear"]}`, `{"model":"m","Models":["dear"]}`,
		`{"model":"m","service_tier":"priority"}`, `{"model":"m","api_base":"http://me"}`, `{"model":"m"} {"model":"n"}`,
	} {
		var no *refusal
		if _, err := parseChat([]byte(in)); !errors.As(err, &no) || no.status != 400 {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// What goes upstream is one JSON object with one model: the one that was
// checked, however a decoder treats small and capital letters.
func FuzzParseChat(f *testing.F) {
	f.Add([]byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	f.Add([]byte(`{"model":"a","model":"b","mod\u0065l":"c"}`))
	f.Add([]byte(`{"model":"m","stream_options":{"include_usage":false},"stream":true,"n":2}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := parseChat(raw)
		if err != nil {
			return
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(c.body, &fields); err != nil {
			t.Fatalf("%q: %v", c.body, err)
		}
		var loose struct {
			Model   string
			Stream  bool
			Options struct {
				Usage bool `json:"include_usage"`
			} `json:"stream_options"`
		}
		if err := json.Unmarshal(c.body, &loose); err != nil || loose.Model != c.model {
			t.Fatalf("%q is for %q, checked was %q: %v", c.body, loose.Model, c.model, err)
		}
		if loose.Stream && !loose.Options.Usage {
			t.Fatalf("%q asks for no usage", c.body)
		}
		for key := range fields {
			if slices.Contains(steering(), strings.ToLower(key)) {
				t.Fatalf("%q steers", c.body)
			}
		}
	})
}
