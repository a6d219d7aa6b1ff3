package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
)

// Fault is what E2B answered instead of doing what it was asked. It wraps one
// of the errors of package sandbox, or none where our request was at fault.
type Fault struct {
	// Status of HTTP; zero for an error within a stream.
	Status int
	// Code is E2B's own word for it, if it had one.
	Code string
	// Message is what it said, without any secret of ours.
	Message string
	// Wait is how long to wait before asking again; zero: E2B did not say.
	Wait time.Duration

	kind error
}

func (f *Fault) Error() string {
	text := "e2b"
	if f.Status != 0 {
		text += fmt.Sprintf(" answered with status %d", f.Status)
	}
	if f.Code != "" && f.Code != strconv.Itoa(f.Status) {
		text += " " + f.Code
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	if f.kind != nil {
		text += " (" + f.kind.Error() + ")"
	}
	return text
}

func (f *Fault) Unwrap() error { return f.kind }

// maxMessage bounds what of a foreign text goes into an error, in bytes.
const maxMessage = 300

// answer is the body of an error in any of the forms that E2B has: the API's
// {code, message, error_code}, the proxy's {sandboxId, message, code, port},
// envd's {code: 401, message} and Connect's {code: "not_found", message}.
type answer struct {
	Code      json.RawMessage `json:"code"`
	ErrorCode string          `json:"error_code"`
	Message   string          `json:"message"`
	SandboxID *string         `json:"sandboxId"`
	Port      int             `json:"port"`
}

func parseAnswer(body []byte) answer {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return answer{Message: strings.TrimSpace(string(body[:min(len(body), maxMessage)]))}
	}
	return a
}

// word is the code as a text, whether it was written as one or as a number.
func (a answer) word() string {
	if a.ErrorCode != "" {
		return a.ErrorCode
	}
	return strings.Trim(string(a.Code), `"`)
}

func (a answer) fault(status int, kind error) *Fault {
	message := strings.ToValidUTF8(a.Message[:min(len(a.Message), maxMessage)], "")
	return &Fault{Status: status, Code: a.word(), Message: message, kind: kind}
}

// apiFault is the error behind an answer of the API.
func apiFault(status int, header http.Header, body []byte) *Fault {
	a := parseAnswer(body)
	f := a.fault(status, apiKind(status, a))
	if status == http.StatusTooManyRequests {
		f.Wait, f.kind = tooMany(header, a.Message)
	}
	return f
}

func apiKind(status int, a answer) error {
	switch a.word() {
	case "sandbox_capacity_unavailable":
		return sandbox.ErrQuota
	case "sandbox_placement_timeout", "sandbox_create_failed":
		return sandbox.ErrTransient
	}
	return statusKind(status)
}

// statusKind is what a status means that nothing else explains.
func statusKind(status int) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return sandbox.ErrAuth
	case status == http.StatusNotFound:
		return sandbox.ErrGone
	case status == http.StatusConflict:
		return sandbox.ErrBusy
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		return sandbox.ErrTransient
	}
	return nil
}

// tooMany tells the two meanings of 429 apart: too many requests, which passes
// by itself and says when, and too many boxes, which does not.
func tooMany(header http.Header, message string) (time.Duration, error) {
	wait, said := retryAfter(header)
	if said || strings.Contains(strings.ToLower(message), "rate limit") {
		return wait, sandbox.ErrTransient
	}
	return 0, sandbox.ErrQuota
}

func retryAfter(header http.Header) (wait time.Duration, said bool) {
	for _, name := range []string{"Retry-After", "RateLimit-Reset"} {
		if seconds, err := strconv.Atoi(header.Get(name)); err == nil && seconds >= 0 {
			return time.Duration(seconds) * time.Second, true
		}
	}
	return 0, false
}

// proxyFault is the error behind an answer of the way into a box, or of envd.
// With a port in it, 502 says that the box runs and nobody listens there yet;
// without, that there is no such box, or that it does not run.
func proxyFault(status int, header http.Header, body []byte) *Fault {
	a := parseAnswer(body)
	kind := statusKind(status)
	switch {
	case status == http.StatusBadGateway && a.SandboxID != nil && a.Port == 0:
		kind = sandbox.ErrGone
	case status == http.StatusNotFound:
		kind = connectKind(a.word())
	}
	f := a.fault(status, kind)
	if status == http.StatusTooManyRequests {
		f.Wait, _ = retryAfter(header)
	}
	return f
}

// connectKind is what the codes of the Connect protocol mean here. not_found is
// a process or a file, not a box.
func connectKind(code string) error {
	switch code {
	case "unauthenticated", "permission_denied":
		return sandbox.ErrAuth
	case "unavailable", "deadline_exceeded", "canceled", "aborted", "resource_exhausted", "unknown":
		return sandbox.ErrTransient
	}
	return nil
}

// unreached is the error of a request that got no whole answer: what became of
// it is not known.
func unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", sandbox.ErrTransient, err)
}

// isFault reports whether E2B answered at all.
func isFault(err error) bool {
	var f *Fault
	return errors.As(err, &f)
}
