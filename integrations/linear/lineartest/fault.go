package lineartest

import (
	"time"

	"ship/bot/standin"
)

// Fault is something that goes wrong. It strikes on an operation, by its name
// in graphql/linear, or on "token" or "revoke" for OAuth.
type Fault = standin.Fault

// Failing is an answer of Linear's own that nothing was done: its errors have
// status 200 or 400, and this code.
func Failing(operation string, status int, code, message string) Fault {
	p := problem{status: status, kind: "other", code: code, message: message}
	return Fault{On: operation, Status: status, Body: string(p.body(""))}
}

// Limited is the answer when the hour's allowance is used up until reset.
func Limited(operation string, reset time.Time) Fault {
	return Fault{
		On: operation, Status: errLimited.status, Body: string(errLimited.body("")),
		Header: usage{reset: reset}.header(allowance{requests: 5000, complexity: 2_000_000}, 0),
	}
}
