package modeltest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Conversation is what the agent sent: everything said so far, and the tools
// that it offers.
type Conversation struct {
	Model    string
	System   string
	Messages []Message
	Tools    []Tool
	// Digest is the same for the same messages to the same model.
	Digest string
}

// Message is one entry of the conversation, system messages excluded.
type Message struct {
	// Role is user, assistant or tool.
	Role string
	Text string
	// Calls are the tools that an assistant message asked for.
	Calls []Call
	// CallID is which call a tool message answers.
	CallID string
}

// Tool is one that the agent offers.
type Tool struct {
	Name     string
	Required []string
	// Properties maps each argument to its JSON schema type.
	Properties map[string]string
}

// Answers counts the assistant messages: how many steps were made so far.
func (c Conversation) Answers() int {
	n := 0
	for _, m := range c.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// Results are the tool results so far, oldest first.
func (c Conversation) Results() []string {
	var out []string
	for _, m := range c.Messages {
		if m.Role == "tool" {
			out = append(out, m.Text)
		}
	}
	return out
}

// LastUser is what the user said last.
func (c Conversation) LastUser() string {
	for i := len(c.Messages) - 1; i >= 0; i-- {
		if c.Messages[i].Role == "user" {
			return c.Messages[i].Text
		}
	}
	return ""
}

// Offers says whether the agent has this tool.
func (c Conversation) Offers(name string) bool {
	_, ok := c.tool(name)
	return ok
}

func (c Conversation) tool(name string) (Tool, bool) {
	for _, t := range c.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// wireRequest is the part of a chat completion request that matters here.
type wireRequest struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Messages []json.RawMessage `json:"messages"`
	Tools    []wireTool        `json:"tools"`
}

type wireTool struct {
	Function struct {
		Name       string `json:"name"`
		Parameters struct {
			Required   []string `json:"required"`
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
		} `json:"parameters"`
	} `json:"function"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// decode reads a request body. It never fails on content that it does not
// know; only on what is not JSON of the right outline.
func decode(body []byte) (Conversation, bool, error) {
	var req wireRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return Conversation{}, false, fmt.Errorf("decode chat request: %w", err)
	}
	c := Conversation{Model: req.Model}
	sum := sha256.New()
	fmt.Fprintln(sum, req.Model)
	for _, raw := range req.Messages {
		sum.Write(raw)
		if err := c.add(raw); err != nil {
			return Conversation{}, false, err
		}
	}
	c.Digest = hex.EncodeToString(sum.Sum(nil)[:12])
	for _, t := range req.Tools {
		c.Tools = append(c.Tools, t.tool())
	}
	return c, req.Stream, nil
}

func (c *Conversation) add(raw json.RawMessage) error {
	var w wireMessage
	if err := json.Unmarshal(raw, &w); err != nil {
		return fmt.Errorf("decode chat message: %w", err)
	}
	text := contentText(w.Content)
	if w.Role == "system" || w.Role == "developer" {
		c.System += text
		return nil
	}
	m := Message{Role: w.Role, Text: text, CallID: w.ToolCallID}
	for _, call := range w.ToolCalls {
		m.Calls = append(m.Calls, decodeCall(call.ID, call.Function.Name, call.Function.Arguments))
	}
	c.Messages = append(c.Messages, m)
	return nil
}

func decodeCall(id, name, arguments string) Call {
	call := Call{id: id, Tool: name}
	// Arguments that are not an object stay nil: the script sees the name only.
	_ = json.Unmarshal([]byte(arguments), &call.Args)
	return call
}

// contentText reads both forms of content: a string, or a list of parts.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

func (t wireTool) tool() Tool {
	p := t.Function.Parameters
	out := Tool{Name: t.Function.Name, Required: p.Required, Properties: map[string]string{}}
	for name, prop := range p.Properties {
		kind, ok := prop.Type.(string)
		if !ok {
			kind = "string"
		}
		out.Properties[name] = kind
	}
	return out
}
