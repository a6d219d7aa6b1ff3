package linear

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"
)

const (
	// requestTimeout bounds one request to Linear's API.
	requestTimeout = 15 * time.Second
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 16 << 20
)

var (
	// errSlow is the cause of a request that took too long.
	errSlow = errors.New("linear did not answer in time")
	// errRedirect: the token is for Linear, not for where it sends us.
	errRedirect = errors.New("linear sends us elsewhere, check linear.api_url")
)

// Transport is below everything that speaks with one workspace's API: it adds
// the access token, and tells the governor and the tokens what Linear answers.
// A request that Linear refused for its token is sent once more with another,
// for nothing came of it. Whoever sends it asks the governor before.
//
// Each answer is read whole, within the time that a request may take. Its
// StatusCode is what StatusOf reads.
type Transport struct {
	// Organization is the workspace; it is the governor's credential as well.
	Organization string
	Tokens       *Tokens
	Governor     *Governor
	// Next carries the requests; nil: http.DefaultTransport.
	Next http.RoundTripper
	// Logger gets a line when the governor could not be told; nil discards.
	Logger *slog.Logger
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	resp, access, err := t.send(r)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	if err := t.Tokens.Invalidate(ctx, t.Organization, access); err != nil {
		return nil, err
	}
	again, err := rewound(r)
	if err != nil || again == nil {
		return resp, err
	}
	if err := t.Governor.Acquire(ctx, t.Organization, Settling, 0); err != nil {
		return nil, err
	}
	resp, _, err = t.send(again)
	return resp, err
}

// rewound is the request with its body from the beginning; nil when it has
// none to be had again.
func rewound(r *http.Request) (*http.Request, error) {
	again := r.Clone(r.Context())
	if r.Body == nil || r.Body == http.NoBody {
		return again, nil
	}
	if r.GetBody == nil {
		return nil, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, fmt.Errorf("send it again: %w", err)
	}
	again.Body = body
	return again, nil
}

// send sends a request once and learns from the answer.
func (t *Transport) send(r *http.Request) (resp *http.Response, access string, err error) {
	ctx := r.Context()
	if r.Response != nil {
		err = errRedirect
	} else {
		access, err = t.Tokens.Token(ctx, t.Organization)
	}
	if err != nil {
		if r.Body != nil {
			err = errors.Join(err, r.Body.Close()) // as a RoundTripper must
		}
		return nil, "", err
	}
	out := r.Clone(ctx)
	out.Header.Set("Authorization", "Bearer "+access)
	resp, body, err := t.whole(out)
	if err != nil {
		return nil, "", err
	}
	resp.StatusCode = StatusOf(resp.StatusCode, body)
	// What Linear did it did, whether the governor hears of it or not.
	if err := t.Governor.Observe(ctx, t.Organization, resp.Header, resp.StatusCode); err != nil && t.Logger != nil {
		t.Logger.WarnContext(ctx, "what linear said of its rate was not kept", "err", err)
	}
	return resp, access, nil
}

func (t *Transport) whole(r *http.Request) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), requestTimeout, errSlow)
	defer cancel()
	next := t.Next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("read answer: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, body, nil
}
