package broker

import (
	"bytes"
	"encoding/json"
	"math"
)

// Price of a model in US dollars per million tokens.
type Price struct {
	Input, Output float64
	// Cached is the price of input tokens that the provider had in its cache.
	// Zero: the same as Input.
	Cached float64
}

func (p Price) valid() bool {
	for _, v := range []float64{p.Input, p.Output, p.Cached} {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// tokens of one call, as the OpenAI API counts them: input includes cached,
// output includes reasoning.
type tokens struct{ input, cached, output int }

func (p Price) cost(t tokens) float64 {
	cached := p.Cached
	if cached == 0 {
		cached = p.Input
	}
	usd := float64(t.input-t.cached)*p.Input + float64(t.cached)*cached + float64(t.output)*p.Output
	return usd / 1e6
}

// bytesPerToken is what an estimate assumes. English and code have about four;
// fewer makes the estimate err on the dear side.
const bytesPerToken = 3

const (
	// maxLine of a stream; a longer one is not searched for usage.
	maxLine = 1 << 20
	// maxAnswer in one piece; a longer one is estimated.
	maxAnswer = 8 << 20
	// maxTokens that an upstream may claim for a call.
	maxTokens = 1e9
)

// meter reads the usage out of an answer that passes by. It never fails: an
// answer that cannot be understood is estimated.
type meter struct {
	// stream: server-sent events; otherwise one JSON document.
	stream bool
	buf    []byte
	// skip: the rest of this line is too long to be kept.
	skip  bool
	size  int
	last  *tokens
	guess int
}

func (m *meter) Write(p []byte) (int, error) {
	m.size += len(p)
	if m.stream {
		m.lines(p)
	} else if len(m.buf) <= maxAnswer {
		m.buf = append(m.buf, p...)
	}
	return len(p), nil
}

func (m *meter) lines(p []byte) {
	for {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		m.collect(line)
		if !whole {
			return
		}
		m.line()
		p = rest
	}
}

func (m *meter) collect(part []byte) {
	if m.skip || len(m.buf)+len(part) > maxLine {
		m.skip = true
		m.guess += perToken(len(m.buf) + len(part))
		m.buf = m.buf[:0]
		return
	}
	m.buf = append(m.buf, part...)
}

// line takes one whole line of a stream. Providers write an event's JSON in one
// data line; one that is spread over several is not understood.
func (m *meter) line() {
	data, found := bytes.CutPrefix(m.buf, []byte("data:"))
	if found && !m.skip {
		m.event(bytes.TrimSpace(data))
	}
	m.buf, m.skip = m.buf[:0], false
}

// answer is what we read of a completion or of a piece of one.
type answer struct {
	Usage *struct {
		Prompt     float64 `json:"prompt_tokens"`
		Completion float64 `json:"completion_tokens"`
		Details    struct {
			Cached float64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Choices []struct {
		Delta json.RawMessage `json:"delta"`
	} `json:"choices"`
}

func (m *meter) event(data []byte) {
	var a answer
	if json.Unmarshal(data, &a) != nil {
		return // "[DONE]", or nothing that we know
	}
	for _, c := range a.Choices {
		m.guess += perToken(len(c.Delta))
	}
	m.note(a)
}

// note keeps the last usage: those who report it more than once report totals.
func (m *meter) note(a answer) {
	if a.Usage == nil {
		return
	}
	t, ok := count(a.Usage.Prompt, a.Usage.Details.Cached, a.Usage.Completion)
	if ok {
		m.last = &t
	}
}

// count checks the numbers; they come as floats since some providers write
// them so.
func count(prompt, cached, completion float64) (t tokens, ok bool) {
	for _, n := range []float64{prompt, cached, completion} {
		if n < 0 || n > maxTokens {
			return tokens{}, false
		}
	}
	if prompt == 0 && completion == 0 {
		return tokens{}, false
	}
	return tokens{input: int(prompt), cached: int(min(cached, prompt)), output: int(completion)}, true
}

// result returns what the answer used. What it does not say is estimated from
// the bytes of the request and the answer, and never as cached.
func (m *meter) result(request int) (t tokens, estimated bool) {
	if m.stream {
		m.line() // one without an end
	} else {
		m.document()
	}
	if m.last != nil {
		return *m.last, false
	}
	return tokens{input: perToken(request), output: m.guess}, true
}

func (m *meter) document() {
	m.guess = perToken(m.size)
	var a answer
	if len(m.buf) <= maxAnswer && json.Unmarshal(m.buf, &a) == nil {
		m.note(a)
	}
	m.buf = nil
}

// perToken rounds up: whatever there is, is a token.
func perToken(size int) int { return (size + bytesPerToken - 1) / bytesPerToken }
