package github

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
	// requestTimeout bounds one request to GitHub, which itself gives up after
	// ten seconds of work.
	requestTimeout = 30 * time.Second
	// maxAnswer bounds what is read of an answer; a page of a hundred long
	// comments is below it.
	maxAnswer = 64 << 20
)

// errSlow is the cause of a request that took too long.
var errSlow = errors.New("github did not answer in time")

// transport is below everything that speaks with GitHub. It reads each answer
// whole, within the time that a request may take: the client libraries above
// do not close every body, and a deadline must not outlive its request.
type transport struct {
	next    http.RoundTripper
	logger  *slog.Logger
	timeout time.Duration
	// clock learns from every answer. nil: nothing is signed.
	clock *clock
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := t.whole(r)
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	t.logger.LogAttrs(r.Context(), slog.LevelDebug, "github request", // never a header or a body
		slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int("status", status), slog.Duration("took", time.Since(start)))
	return resp, err
}

func (t transport) whole(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), t.timeout, errSlow)
	defer cancel()
	resp, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if t.clock != nil && t.clock.heed(resp, time.Now().Round(0)) && resp.StatusCode == http.StatusUnauthorized {
		return nil, errClock
	}
	return resp, nil
}
