package linear

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"ship/session"
)

// maxSentence is how much of Linear's own words goes into a sentence of ours.
const maxSentence = 300

// verdict is an answer of Linear's API that is no.
type verdict struct {
	// status as StatusOf reads it.
	status        int
	kind, code    string
	message, says string
}

// verdictOf finds the answer in an error; not ok: it is about the way there.
func verdictOf(err error) (v verdict, ok bool) {
	var answer *graphql.HTTPError
	var list gqlerror.List
	switch {
	case errors.As(err, &answer):
		v.status, list = answer.StatusCode, answer.Response.Errors
	case errors.As(err, &list):
		v.status = http.StatusOK
	default:
		return v, false
	}
	for _, e := range list {
		v.message = e.Message
		v.kind, _ = e.Extensions["type"].(string)
		v.code, _ = e.Extensions["code"].(string)
		v.says, _ = e.Extensions["userPresentableMessage"].(string)
		break // the first is why
	}
	return v, true
}

// missing names what Linear does not find, or does not let us see.
func (v verdict) missing() string {
	kind, _ := strings.CutPrefix(v.message, "Entity not found")
	if kind == v.message {
		return ""
	}
	return strings.TrimLeft(kind, ": ")
}

// gone: what we speak in is not there for us any more.
func (v verdict) gone() bool {
	what := v.missing()
	return strings.HasPrefix(what, "AgentSession") || strings.HasPrefix(what, "Issue")
}

// refused: the input was, and will be whenever it is sent again.
func (v verdict) refused() bool {
	return !v.limited() && !v.passes() && !v.gone() && v.code == "INPUT_ERROR"
}

func (v verdict) forbids() bool { return v.status == http.StatusForbidden || v.code == "FORBIDDEN" }

func (v verdict) limited() bool { return v.status == http.StatusTooManyRequests }

// passes: it is a fault of Linear's that may be gone the next time.
func (v verdict) passes() bool {
	said := strings.ToLower(v.kind + " " + v.message)
	return v.status >= http.StatusInternalServerError || v.code == "INTERNAL_SERVER_ERROR" ||
		strings.Contains(said, "lock timeout") || strings.Contains(said, "internal error")
}

// refusedInput tells whether an error is one of input that is not to be sent
// again.
func refusedInput(err error) bool {
	v, ok := verdictOf(err)
	return ok && v.refused()
}

// problem turns whatever went wrong into what people may read, and whether it
// is worth repeating. A context that ended stays what it is: its cause says what
// to do.
func (w *work) problem(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("linear: %w: %w", context.Cause(ctx), err)
	}
	p := classify(err)
	if p.Gone {
		w.app.forget(w.id)
	}
	return p
}

func classify(err error) *session.Problem {
	var known *session.Problem
	var wait *notYet
	if errors.As(err, &known) {
		p := *known
		p.Gone = p.Gone || errors.Is(err, ErrNotInstalled) || errors.Is(err, ErrReinstall)
		p.Err = err
		return &p
	}
	if errors.As(err, &wait) {
		return &session.Problem{Say: "Linear asks me to slow down. I go on in a while.", Err: err, Again: true, After: wait.wait}
	}
	if v, ok := verdictOf(err); ok {
		return v.problem(err)
	}
	return &session.Problem{Say: "Linear could not be reached. I keep trying.", Err: err, Again: true}
}

func (v verdict) problem(err error) *session.Problem {
	p := &session.Problem{Err: err}
	switch {
	case v.limited():
		p.Say, p.Again = "Linear asks me to slow down. I go on in a while.", true // the governor knows when
	case v.passes():
		p.Say, p.Again = "Linear has trouble just now. I keep trying.", true
	case v.status == http.StatusUnauthorized:
		p.Say, p.Again = "Linear did not accept my token. I try again with a new one.", true
	case v.gone():
		p.Say, p.Gone = "I cannot see this in Linear any more. Check that it is still there, and that the app may see its team.", true
	case v.forbids():
		p.Say = "Linear forbids that: " + v.sentence() + " An admin of the workspace can change what the app may do."
	default:
		p.Say = "Linear refused: " + v.sentence() + " Whoever runs me finds the details in the log."
	}
	return p
}

// sentence is what Linear said, fit to be quoted.
func (v verdict) sentence() string {
	said := v.says
	if said == "" {
		said = v.message
	}
	said = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("`<>@[]|*", r) {
			return -1
		}
		return r
	}, said)
	if len(said) > maxSentence {
		said = strings.ToValidUTF8(said[:maxSentence], "") + "…"
	}
	if said == "" {
		return "it did not say why."
	}
	return strings.TrimRight(said, ".") + "."
}
