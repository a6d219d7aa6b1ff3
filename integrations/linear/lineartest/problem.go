package lineartest

import (
	"encoding/json"
	"net/http"
)

// object is a JSON object.
type object = map[string]any

// problem is one of Linear's errors.
type problem struct {
	// status of HTTP; zero: that of refused inputs.
	status  int
	kind    string
	code    string
	message string
	// user: the one who asked is to blame, and may be shown say.
	user bool
	say  string
}

func (p problem) Error() string { return p.message }

// body is the answer, for the field of the operation that failed.
func (p problem) body(field string) []byte {
	inner := p.status
	if inner == 0 || inner == http.StatusOK {
		inner = http.StatusBadRequest
	}
	e := object{"message": p.message, "extensions": object{
		"type": p.kind, "code": p.code, "statusCode": inner, "userError": p.user,
		"userPresentableMessage": p.say, "http": object{"status": inner, "headers": object{}},
	}}
	if field != "" {
		e["path"] = []string{field}
	}
	return mustJSON(object{"data": nil, "errors": []object{e}})
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("lineartest: " + err.Error()) // only plain values are marshalled
	}
	return b
}

var (
	errUnauthenticated = problem{
		status: http.StatusUnauthorized, kind: "authentication error", code: "AUTHENTICATION_ERROR",
		message: "Authentication required, not authenticated", user: true, say: "You need to authenticate to access this operation.",
	}
	errLimited = problem{
		status: http.StatusBadRequest, kind: "ratelimited", code: "RATELIMITED",
		message: "Rate limit exceeded", user: true, say: "Rate limit exceeded. Please try again later.",
	}
)

// invalid refuses an input for good.
func invalid(message string) problem {
	return problem{kind: "invalid input", code: "INPUT_ERROR", message: message, user: true, say: message}
}

// notFound says that there is no such thing, or none that the app may see.
func notFound(kind string) problem {
	p := invalid("Entity not found: " + kind)
	p.say = "Could not find referenced " + kind + "."
	return p
}

// duplicate refuses an id that is taken. Assumed: the text is not documented.
func duplicate(kind string) problem {
	return invalid(kind + " with this id already exists")
}

// forbidden says that the token lacks a scope.
func forbidden(scope string) problem {
	return problem{
		status: http.StatusForbidden, kind: "forbidden", code: "FORBIDDEN", user: true,
		message: "Invalid scope: `" + scope + "` required", say: "Invalid scope: `" + scope + "` required",
	}
}

// malformed refuses a document or its variables.
func malformed(message string) problem {
	return problem{
		status: http.StatusBadRequest, kind: "graphql error", code: "GRAPHQL_VALIDATION_FAILED",
		message: message, user: true, say: message,
	}
}
