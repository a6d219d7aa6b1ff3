package opencode

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"ship/sandbox/agent"
)

// fail takes over an error of the agent. An abort is none: somebody wanted it.
func (m *message) fail(e wireError) {
	m.settled = true
	switch e.Name {
	case "MessageAbortedError":
		m.aborted = true
		return
	}
	m.failure = &agent.Failure{
		Name: e.Name, Status: e.Data.StatusCode, Retryable: e.Data.IsRetryable,
		Message: clip(e.Data.Message, maxError), Code: failureCode(e.Data.ResponseBody),
		Final: final(e.Name),
	}
}

// final names the errors that asking again does not cure.
func final(name string) bool {
	switch name {
	case "ProviderAuthError", "ContextOverflowError", "ContentFilterError",
		"MessageOutputLengthError", "StructuredOutputError":
		return true
	}
	return false
}

// failureCode finds the machine-readable word in a provider's answer: within
// "error", as OpenAI does, or beside it. The broker's own words are also found
// in a body of another shape, because a budget must never look like a refusal.
func failureCode(body string) string {
	var w struct {
		Code  any `json:"code"`
		Error any `json:"error"`
	}
	if json.Unmarshal([]byte(body), &w) == nil {
		if inner, ok := w.Error.(map[string]any); ok {
			if code, ok := inner["code"].(string); ok {
				return clip(code, maxTitle)
			}
		}
		if code, ok := w.Code.(string); ok {
			return clip(code, maxTitle)
		}
	}
	for _, code := range []string{agent.CodeBudgetSpent, agent.CodeCallsSpent} {
		if strings.Contains(body, code) {
			return code
		}
	}
	return ""
}

// clip shortens to at most n bytes, on a rune's edge, and says that it did: who
// looks for secrets in what is left has to know that one may be cut.
func clip(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)] + mark
}
