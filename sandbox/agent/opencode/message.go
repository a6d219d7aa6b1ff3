package opencode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"

	"ship/sandbox/agent"
)

// Bounds on what is kept of a message, in bytes.
const (
	maxText    = 32 << 10
	maxTitle   = 200
	maxCommand = 500
	maxError   = 300
	maxOutput  = 8 << 10
)

// message is what matters of one message of a conversation.
type message struct {
	id   string
	user bool
	// at is when it was made, in milliseconds by the box's clock.
	at int64
	// settled: it cannot change any more.
	settled bool
	// summary: the agent shortened its own memory; not an answer.
	summary bool
	finish  string
	failure *agent.Failure
	aborted bool
	text    string
	calls   []agent.Call
	// todos is the list as this message left it; nil: it did not touch it.
	todos []agent.Todo
	// delegates: it started a subagent.
	delegates bool
	usage     agent.Usage
	// mark changes when anything in the message does.
	mark uint64
}

// complete says whether the turn is over with this message as the last one.
func (m message) complete() bool {
	if m.user || m.summary {
		return false
	}
	if m.failure != nil || m.aborted {
		return true
	}
	// After these two OpenCode asks the model again.
	return m.finish != "" && m.finish != "tool-calls" && m.finish != "unknown"
}

type wireStatus struct {
	Type    string `json:"type"`
	Attempt int    `json:"attempt"`
	Message string `json:"message"`
}

type wireTokens struct {
	Input     float64 `json:"input"`
	Output    float64 `json:"output"`
	Reasoning float64 `json:"reasoning"`
	Cache     struct {
		Read  float64 `json:"read"`
		Write float64 `json:"write"`
	} `json:"cache"`
}

type wireMessage struct {
	Info struct {
		ID      string `json:"id"`
		Role    string `json:"role"`
		Finish  string `json:"finish"`
		Summary any    `json:"summary"` // a bool here, an object on user messages
		Time    struct {
			Created   int64 `json:"created"`
			Completed int64 `json:"completed"`
		} `json:"time"`
		Error  *wireError `json:"error"`
		Cost   float64    `json:"cost"`
		Tokens wireTokens `json:"tokens"`
	} `json:"info"`
	Parts []wirePart `json:"parts"`
}

type wireError struct {
	Name string `json:"name"`
	Data struct {
		Message      string `json:"message"`
		StatusCode   int    `json:"statusCode"`
		IsRetryable  bool   `json:"isRetryable"`
		ResponseBody string `json:"responseBody"`
	} `json:"data"`
}

type wirePart struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Text      string    `json:"text"`
	Synthetic bool      `json:"synthetic"`
	Ignored   bool      `json:"ignored"`
	CallID    string    `json:"callID"`
	Tool      string    `json:"tool"`
	State     wireState `json:"state"`
}

type wireState struct {
	Status   string          `json:"status"`
	Input    json.RawMessage `json:"input"`
	Output   string          `json:"output"`
	Title    string          `json:"title"`
	Error    string          `json:"error"`
	Metadata json.RawMessage `json:"metadata"`
}

// decodeMessages reads a page of messages, oldest first.
func decodeMessages(body []byte) ([]message, error) {
	var page []wireMessage
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("decode messages: %w", err)
	}
	out := make([]message, 0, len(page))
	for _, w := range page {
		out = append(out, w.message())
	}
	return out, nil
}

func (w wireMessage) message() message {
	i := w.Info
	m := message{
		id: i.ID, user: i.Role == "user", at: i.Time.Created, finish: i.Finish,
		summary: i.Summary == true, settled: i.Role == "user" || i.Time.Completed > 0,
	}
	mark := fnv.New64a()
	fmt.Fprintln(mark, i.ID, i.Finish, i.Time.Completed > 0)
	for _, p := range w.Parts {
		m.take(p)
		fmt.Fprintln(mark, p.ID, p.State.Status, len(p.Text), len(p.State.Output), len(p.State.Metadata))
	}
	if !m.user {
		m.usage = usage(i.Tokens, i.Cost)
	}
	if i.Error != nil {
		m.fail(*i.Error)
		fmt.Fprintln(mark, i.Error.Name)
	} else if i.Finish == "content-filter" {
		m.failure = &agent.Failure{Name: i.Finish, Message: "the answer was filtered", Final: true}
	}
	m.mark = mark.Sum64()
	return m
}

// take adds one part to the message.
func (m *message) take(p wirePart) {
	switch p.Type {
	case "text":
		if !p.Synthetic && !p.Ignored && !m.user {
			m.text = clip(strings.TrimSpace(m.text+"\n\n"+p.Text), maxText)
		}
	case "tool":
		m.calls = append(m.calls, p.call())
		if p.State.Status == "pending" || p.State.Status == "running" {
			m.settled = false
		}
		if p.Tool == "todowrite" {
			m.todos = todos(p.State.Input, m.todos)
		}
		m.delegates = m.delegates || p.Tool == "task"
	}
}

func usage(t wireTokens, cost float64) agent.Usage {
	return agent.Usage{
		Calls: 1, USD: cost,
		Input:  int(t.Input + t.Cache.Read + t.Cache.Write),
		Output: int(t.Output + t.Reasoning),
	}
}

// todos reads the list that a call sets; else what it was before.
func todos(input json.RawMessage, before []agent.Todo) []agent.Todo {
	var w struct {
		Todos []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
	}
	if json.Unmarshal(input, &w) != nil || w.Todos == nil {
		return before
	}
	out := make([]agent.Todo, 0, len(w.Todos))
	for _, t := range w.Todos {
		out = append(out, agent.Todo{Text: clip(t.Content, maxTitle), Status: t.Status})
	}
	return out
}

func (p wirePart) call() agent.Call {
	c := agent.Call{ID: p.CallID, Tool: p.Tool, Digest: inputDigest(p.State.Input)}
	c.Title = clip(cmp.Or(p.State.Title, inputTitle(p.State.Input)), maxTitle)
	if p.Tool == "bash" {
		c.Command = clip(inputField(p.State.Input, "command"), maxCommand)
		c.Printed, c.Output = p.State.printed()
	}
	c.Status, c.Error = p.State.outcome()
	return c
}

// printed is how much a shell command has printed, and the last of it. While it
// runs OpenCode keeps that in the metadata.
func (s wireState) printed() (size int, last string) {
	all := s.Output
	if all == "" {
		all = inputField(s.Metadata, "output")
	}
	from := max(len(all)-maxOutput, 0)
	for from < len(all) && !utf8.RuneStart(all[from]) {
		from++
	}
	return len(all), strings.Clone(all[from:]) // the rest need not stay
}

// outcome of a call. A shell command that ran is "completed", whatever its exit
// code; here it has failed unless that is zero.
func (s wireState) outcome() (agent.CallStatus, string) {
	switch s.Status {
	case "running":
		return agent.CallRunning, ""
	case "error":
		return agent.CallFailed, clip(cmp.Or(s.Error, "failed"), maxError)
	case "completed":
		var meta struct {
			Exit *float64 `json:"exit"`
		}
		if json.Unmarshal(s.Metadata, &meta) == nil && meta.Exit != nil && *meta.Exit != 0 {
			return agent.CallFailed, fmt.Sprint("exit code ", *meta.Exit)
		}
		return agent.CallDone, ""
	}
	return agent.CallPending, ""
}

// inputDigest is the same for the same input, in whatever order it is written.
func inputDigest(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) == nil {
		if b, err := json.Marshal(v); err == nil {
			raw = b
		}
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// inputTitle finds words for a call that has no title yet.
func inputTitle(raw json.RawMessage) string {
	for _, field := range []string{"command", "filePath", "pattern", "description", "url", "path"} {
		if s := inputField(raw, field); s != "" {
			return s
		}
	}
	return ""
}

func inputField(raw json.RawMessage, name string) string {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	s, _ := fields[name].(string)
	return s
}
