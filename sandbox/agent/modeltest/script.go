package modeltest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Note is in every text that a script says, so that no reader takes it for a
// model's. It comes last, unless the script has put it elsewhere.
const Note = "(A scripted stand-in wrote this, not a language model.)"

// Script decides what comes next. It must be a pure function: the same
// conversation gets the same reply.
type Script func(Conversation) Reply

// Reply is one answer of the model. Make it with Say, Use, Fail, Hang, HangIn
// or Cut.
type Reply struct {
	// Text comes first, then the Calls.
	Text  string
	Calls []Call
	// Usage that the reply reports; the zero value reports 100 in, 20 out.
	Usage Usage
	// Pause is waited before every chunk of the stream.
	Pause time.Duration

	fault fault
	code  int
	body  string
}

// Usage as the provider reports it, in tokens.
type Usage struct {
	Input  int
	Cached int
	Output int
}

// fault is how a reply misbehaves.
type fault int

const (
	healthy fault = iota
	refuses
	hangsAtOnce
	hangsInside
	cutsInside
)

// Say answers with text and ends the turn.
func Say(format string, args ...any) Reply {
	return Reply{Text: fmt.Sprintf(format, args...)}
}

// Use answers with tool calls.
func Use(calls ...Call) Reply { return Reply{Calls: calls} }

// Fail answers with an HTTP status and an error body of the usual shape. Code
// is the machine-readable word in it.
func Fail(status int, code, message string) Reply {
	body := fmt.Sprintf(`{"error":{"message":%q,"type":"error","code":%q}}`, message, code)
	return Reply{fault: refuses, code: status, body: body}
}

// Hang takes the request and never answers.
func Hang() Reply { return Reply{fault: hangsAtOnce} }

// HangIn streams the text and then stays silent, connection open.
func HangIn(text string) Reply { return Reply{Text: text, fault: hangsInside} }

// Cut streams the text and breaks the connection.
func Cut(text string) Reply { return Reply{Text: text, fault: cutsInside} }

// Slowly makes a reply wait before each of its chunks.
func (r Reply) Slowly(pause time.Duration) Reply {
	r.Pause = pause
	return r
}

// Costing sets the usage that a reply reports.
func (r Reply) Costing(u Usage) Reply {
	r.Usage = u
	return r
}

// Steps plays replies in order: the n-th answer of the conversation is the
// n-th reply, whatever the user says in between. After the last it says that
// the script is over.
func Steps(replies ...Reply) Script {
	return func(c Conversation) Reply {
		if n := c.Answers(); n < len(replies) {
			return replies[n]
		}
		return Say("The script is over after %d steps.", len(replies))
	}
}

// Always gives the same reply for ever. With a tool call in it, that is an
// endless loop.
func Always(r Reply) Script { return func(Conversation) Reply { return r } }

// Endless calls a tool for ever, differently each time: next is given the
// number of the step, from 0.
func Endless(next func(step int) Call) Script {
	return func(c Conversation) Reply { return Use(next(c.Answers())) }
}

// ByModel lets each model name play its own script. A name that is not in the
// list is answered with 404, as providers do.
func ByModel(scripts map[string]Script) Script {
	return func(c Conversation) Reply {
		if s, ok := scripts[c.Model]; ok {
			return s(c)
		}
		return Fail(http.StatusNotFound, "model_not_found", "no such model: "+c.Model)
	}
}

// noted adds Note to a text, once.
func noted(text string) string {
	if text == "" || strings.Contains(text, Note) {
		return text
	}
	return strings.TrimRight(text, "\n") + "\n\n" + Note
}
