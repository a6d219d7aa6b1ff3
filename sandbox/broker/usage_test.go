package broker

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestCost(t *testing.T) {
	t.Parallel()
	p := Price{Input: 3, Output: 15, Cached: 0.3}
	// 602 fresh and 400 cached tokens in, 40 of text and 10 of reasoning out.
	if got := p.cost(tokens{input: 1002, cached: 400, output: 50}); !near(got, 0.002676) {
		t.Errorf("cost %v", got)
	}
	p.Cached = 0
	if got := p.cost(tokens{input: 1000, cached: 1000}); !near(got, 0.003) {
		t.Errorf("without a price for cached tokens: %v", got)
	}
}

const streamed = `data: {"choices":[{"delta":{"content":"Hel"}}],"usage":null}

: a comment
event: message
data: {"choices":[{"delta":{"content":"lo"}}]}

data:{"choices":[],"usage":{"prompt_tokens":1002,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":400}}}

data: [DONE]

`

func TestMeter(t *testing.T) {
	t.Parallel()
	const document = `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":12.0,"completion_tokens":3}}`
	known := tokens{input: 1002, cached: 400, output: 50}
	for name, c := range map[string]struct {
		stream    bool
		in        string
		want      tokens
		estimated bool
	}{
		"stream":           {true, streamed, known, false},
		"with returns":     {true, strings.ReplaceAll(streamed, "\n", "\r\n"), known, false},
		"without last end": {true, `data: {"usage":{"prompt_tokens":5,"completion_tokens":2}}`, tokens{input: 5, output: 2}, false},
		"totals on the way": {true, "data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\n" +
			"data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":9}}\n\n", tokens{input: 5, output: 9}, false},
		"cut stream": {true, streamed[:strings.Index(streamed, "data:{")], tokens{input: 10, output: 6 + 6}, true},
		"other text": {true, "hello\n\n\n", tokens{input: 10}, true},
		"forged in text": {true, `data: {"choices":[{"delta":{"content":"\"usage\":{\"prompt_tokens\":1}"}}]}` + "\n",
			tokens{input: 10, output: 15}, true},
		"document":       {false, document, tokens{input: 12, output: 3}, false},
		"cached too big": {false, `{"usage":{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":9}}}`, tokens{input: 5, cached: 5}, false},
		"no usage":       {false, `{"choices":[]}`, tokens{input: 10, output: 5}, true},
		"negative":       {false, `{"usage":{"prompt_tokens":-5}}`, tokens{input: 10, output: 10}, true},
		"absurd":         {false, `{"usage":{"prompt_tokens":1e99}}`, tokens{input: 10, output: 11}, true},
		"nothing used":   {false, `{"usage":{"prompt_tokens":0}}`, tokens{input: 10, output: 10}, true},
		"not JSON":       {false, `oh`, tokens{input: 10, output: 1}, true},
		"empty":          {false, ``, tokens{input: 10}, true},
	} {
		m := &meter{stream: c.stream}
		m.Write([]byte(c.in))
		got, estimated := m.result(30)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(tokens{})); diff != "" || estimated != c.estimated {
			t.Errorf("%s: estimated %v, %s", name, estimated, diff)
		}
	}
}

func TestMeterIsBounded(t *testing.T) {
	t.Parallel()
	m := &meter{stream: true}
	m.Write([]byte("data: "))
	piece := []byte(strings.Repeat("x", 100<<10))
	for range 40 {
		m.Write(piece)
		if cap(m.buf) > 2*maxLine {
			t.Fatalf("holds %d bytes of one line", cap(m.buf))
		}
	}
	m.Write([]byte("\n" + streamed))
	if got, estimated := m.result(1); estimated || got.output != 50 {
		t.Errorf("after a long line: %+v, estimated %v", got, estimated)
	}
	d := &meter{}
	for range 120 {
		d.Write(piece)
	}
	if cap(d.buf) > 2*maxAnswer {
		t.Errorf("holds %d bytes of a document", cap(d.buf))
	}
	if got, estimated := d.result(1); !estimated || got.output != perToken(120*len(piece)) {
		t.Errorf("long document: %+v, estimated %v", got, estimated)
	}
}

// Where an answer is cut into pieces changes nothing, and no answer yields
// numbers that cannot be.
func FuzzMeter(f *testing.F) {
	f.Add(streamed, true, uint(7))
	f.Add(`{"usage":{"prompt_tokens":5,"completion_tokens":1e3}}`, false, uint(1))
	f.Add("data: {\"usage\":{\"prompt_tokens\":1e400}}\n", true, uint(3))
	f.Add("data:\ndata: {}\n\r\n", true, uint(2))
	f.Fuzz(func(t *testing.T, in string, stream bool, step uint) {
		whole := &meter{stream: stream}
		whole.Write([]byte(in))
		want, wantEstimated := whole.result(len(in))
		pieces := &meter{stream: stream}
		n := int(step%64) + 1
		for rest := in; rest != ""; {
			k := min(n, len(rest))
			pieces.Write([]byte(rest[:k]))
			rest = rest[k:]
		}
		got, estimated := pieces.result(len(in))
		if got != want || estimated != wantEstimated {
			t.Fatalf("whole %+v %v, in pieces %+v %v", want, wantEstimated, got, estimated)
		}
		if got.input < 0 || got.output < 0 || got.cached < 0 || got.cached > got.input || got.input > maxTokens {
			t.Fatalf("%+v", got)
		}
	})
}

func TestScrub(t *testing.T) {
	t.Parallel()
	const secret = "sk-sk-abc"
	in := "a sk-sk-abc b sk-sk-sk-abc c sk-sk-ab sk-sk-abcsk-sk-abc end sk-"
	want := strings.ReplaceAll(in, secret, redacted)
	for step := 1; step <= len(in); step++ {
		var out strings.Builder
		s := &scrub{write: func(p []byte) (int, error) { return out.Write(p) }, secret: []byte(secret)}
		for rest := in; rest != ""; {
			k := min(step, len(rest))
			s.Write([]byte(rest[:k]))
			rest = rest[k:]
		}
		s.Close()
		if out.String() != want {
			t.Fatalf("in steps of %d: %q", step, out.String())
		}
	}
}

// Nothing is held back that cannot be a secret's beginning, or a stream would
// stand still.
func TestScrubHoldsNothingBackNeedlessly(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &scrub{write: func(p []byte) (int, error) { return out.Write(p) }, secret: []byte("sk-secret")}
	s.Write([]byte("data: {}\n\n"))
	if out.String() != "data: {}\n\n" {
		t.Errorf("got %q", out.String())
	}
}
