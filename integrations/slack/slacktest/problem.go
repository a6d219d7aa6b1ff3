package slacktest

import (
	"encoding/json"
	"fmt"
	"time"
)

// object is a JSON object.
type object = map[string]any

// problem is one of Slack's errors.
type problem struct {
	code string
	// needed is the scope that is missing.
	needed string
	// messages say what is wrong with the arguments.
	messages []string
	// retry is when to come again; zero: the code says all.
	retry time.Duration
}

func (p problem) Error() string { return p.code }

// body is the answer. Provided are the scopes that the token has.
func (p problem) body(provided string) []byte {
	o := object{"ok": false, "error": p.code}
	if p.needed != "" {
		o["needed"], o["provided"] = p.needed, provided
	}
	if len(p.messages) > 0 {
		o["response_metadata"] = object{"messages": p.messages}
	}
	return mustJSON(o)
}

func refuse(code string) problem { return problem{code: code} }

// missing says that the token lacks a scope.
func missing(scope string) problem { return problem{code: "missing_scope", needed: scope} }

// badArguments refuses arguments, and says which.
func badArguments(format string, args ...any) problem {
	return problem{code: "invalid_arguments", messages: []string{"[ERROR] " + fmt.Sprintf(format, args...)}}
}

// limited refuses what comes too early.
func limited(retry time.Duration) problem { return problem{code: "ratelimited", retry: retry} }

// seconds are whole ones, at least one.
func seconds(d time.Duration) int { return max(int((d+time.Second-1)/time.Second), 1) }

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("slacktest: " + err.Error()) // only plain values are marshalled
	}
	return b
}
