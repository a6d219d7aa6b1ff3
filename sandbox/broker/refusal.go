package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// The codes of refusals, for programs. The sentence beside them is for people.
const (
	codeToken       = "ship_token_invalid"
	codeExpired     = "ship_token_expired"
	codeEnded       = "ship_turn_ended"
	codeNotFound    = "ship_not_found"
	codeMethod      = "ship_method_not_allowed"
	codeMalformed   = "ship_request_malformed"
	codeTooLarge    = "ship_request_too_large"
	codeModel       = "ship_model_not_granted"
	codeCalls       = "ship_calls_spent"
	codeBudget      = "ship_budget_spent"
	codeRepo        = "ship_repository_not_granted"
	codePush        = "ship_push_not_granted"
	codeCredentials = "ship_credentials_failed"
	codeLedger      = "ship_ledger_unavailable"
	codeUnreachable = "ship_upstream_unreachable"
	codeTimeout     = "ship_upstream_timeout"
	codeRefused     = "ship_upstream_refused"
	codeGone        = "ship_client_gone"
	codeEgress      = "ship_host_not_allowed"
	codeAddress     = "ship_address_not_allowed"
	codeHello       = "ship_tunnel_refused"
	codeTraffic     = "ship_traffic_spent"
	codeConnections = "ship_too_many_connections"
	codeInternal    = "ship_internal"
)

// statusGone is for the log: the client that would read it has left.
const statusGone = 499

// Causes and marks that explain turns into refusals.
var (
	errLedger = errors.New("ledger failed")
	errIdle   = errors.New("nothing moved for too long")
	// errCut: the answer had begun, so no refusal can be told any more.
	errCut = errors.New("answer broke off")
)

// refusal is a request that was not served, and why.
type refusal struct {
	status int
	code   string
	// say is for the one who asked; it holds no secret and nothing of cause.
	say   string
	cause error
	// session and turn are for the log.
	session, turn string
}

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, say: fmt.Sprintf(format, args...)}
}

func (no *refusal) because(cause error) *refusal {
	no.cause = cause
	return no
}

func (no *refusal) Error() string {
	if no.cause == nil {
		return no.say
	}
	return no.say + ": " + no.cause.Error()
}

func (no *refusal) Unwrap() error { return no.cause }

func callsSpent(g Grant) *refusal {
	return refuse(http.StatusForbidden, codeCalls, "this turn has made its %d model calls", g.Calls)
}

func budgetSpent(g Grant) *refusal {
	return refuse(http.StatusForbidden, codeBudget, "this turn has spent its budget of %.2f USD", g.BudgetUSD)
}

// asRefusal gives every error a status. What matters for an agent: 403 and 400
// are final, 5xx is tried again.
func asRefusal(err error) *refusal {
	var no *refusal
	var timeout net.Error
	switch {
	case errors.As(err, &no):
		return no
	case errors.Is(err, ErrToken):
		return refuse(http.StatusUnauthorized, codeToken, "the token of this turn is missing or not valid")
	case errors.Is(err, ErrExpired):
		return refuse(http.StatusForbidden, codeExpired, "the time of this turn is over").because(err)
	case errors.Is(err, errEnded):
		return refuse(http.StatusForbidden, codeEnded, "this turn has ended").because(err)
	case errors.Is(err, errLedger):
		return refuse(http.StatusServiceUnavailable, codeLedger, "spending cannot be counted just now").because(err)
	case errors.Is(err, errTooLong):
		return refuse(http.StatusGatewayTimeout, codeTimeout, "this has taken too long").because(err)
	case errors.Is(err, errIdle), errors.As(err, &timeout) && timeout.Timeout():
		return refuse(http.StatusGatewayTimeout, codeTimeout, "the other side was silent for too long").because(err)
	case errors.Is(err, context.Canceled):
		return refuse(statusGone, codeGone, "the client left").because(err)
	}
	return refuse(http.StatusBadGateway, codeUnreachable, "the other side cannot be reached just now").because(err)
}

// refuseJSON says no in the form of the OpenAI API.
func refuseJSON(w http.ResponseWriter, no *refusal) {
	type inner struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    string `json:"code"`
	}
	body, err := json.Marshal(struct {
		Error inner `json:"error"`
	}{inner{"ship: " + no.say, "ship_error", no.code}})
	if err != nil {
		body = []byte("{}") // unreachable: strings can be encoded
	}
	begin(w, no, "application/json")
	w.Write(body)
}

// refuseText says no to git, which prints plain text behind "remote:". A 401
// would make it ask for a password, so it never gets one.
func refuseText(w http.ResponseWriter, no *refusal) {
	if no.status == http.StatusUnauthorized {
		no.status = http.StatusForbidden
	}
	begin(w, no, "text/plain; charset=utf-8")
	fmt.Fprintf(w, "ship: %s\n", strings.TrimSpace(no.say))
}

// refusePlain says no to whoever uses a proxy.
func refusePlain(w http.ResponseWriter, no *refusal) {
	begin(w, no, "text/plain; charset=utf-8")
	fmt.Fprintf(w, "ship: %s\n", no.say)
}

func begin(w http.ResponseWriter, no *refusal, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if no.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "2")
	}
	w.WriteHeader(no.status)
}
