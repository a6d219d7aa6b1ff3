package opencode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"ship/sandbox"
	"ship/sandbox/agent"
)

const (
	// answering bounds one call. The slowest measured was the first prompt
	// after a start, at 3 seconds.
	answering = 20 * time.Second
	// maxAnswer bounds what one answer may hold, in bytes.
	maxAnswer = 64 << 20
)

var errAnswering = errors.New("no answer in time")

// client speaks with one running server.
type client struct {
	http     *http.Client
	password string
}

func newClient(box sandbox.Box, port int, password string) *client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return box.Dial(ctx, port) }
	return &client{password: password, http: &http.Client{Transport: &http.Transport{
		DialContext: dial, MaxIdleConnsPerHost: 4, IdleConnTimeout: 15 * time.Second,
	}}}
}

// apiError is an answer other than 2xx.
type apiError struct {
	Status int
	Name   string
	Text   string
}

func (e *apiError) Error() string {
	return fmt.Sprintf("opencode answered %d %s: %s", e.Status, e.Name, e.Text)
}

// Unwrap makes a missing session recognisable.
func (e *apiError) Unwrap() error {
	if e.Status == http.StatusNotFound {
		return agent.ErrUnknown
	}
	return nil
}

// get asks for out. A call that got no answer is agent.ErrDown, unless the
// caller's own context ended.
func (c *client) get(ctx context.Context, path string, out any) error {
	_, err := c.do(ctx, exchange{method: http.MethodGet, path: path, out: out})
	return err
}

// post sends in and reads out; both may be nil. Errors as get.
func (c *client) post(ctx context.Context, path string, in, out any) error {
	_, err := c.do(ctx, exchange{method: http.MethodPost, path: path, in: in, out: out})
	return err
}

// exchange is one request and where its answer goes.
type exchange struct {
	method, path string
	in, out      any
}

// do makes an exchange and returns the header of the answer.
func (c *client) do(ctx context.Context, x exchange) (http.Header, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answering, errAnswering)
	defer cancel()
	resp, err := c.send(ctx, x)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, down(ctx, fmt.Errorf("read answer to %s %s: %w", x.method, x.path, err))
	}
	if resp.StatusCode/100 != 2 {
		return nil, decodeError(resp.StatusCode, body)
	}
	if x.out == nil || len(body) == 0 {
		return resp.Header, nil
	}
	if err := json.Unmarshal(body, x.out); err != nil {
		return nil, fmt.Errorf("decode answer to %s %s: %w", x.method, x.path, err)
	}
	return resp.Header, nil
}

func (c *client) send(ctx context.Context, x exchange) (*http.Response, error) {
	var body io.Reader
	if x.in != nil {
		b, err := json.Marshal(x.in)
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", x.method, x.path, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, x.method, "http://opencode.box"+x.path, body)
	if err != nil {
		return nil, fmt.Errorf("make request %s %s: %w", x.method, x.path, err)
	}
	req.SetBasicAuth("opencode", c.password)
	if x.in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, down(ctx, fmt.Errorf("%s %s: %w", x.method, x.path, err))
	}
	return resp, nil
}

// down marks an error as "the server does not answer", unless it was the caller
// who left. Our own time limit is the server's silence.
func down(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errAnswering) {
		return cause
	}
	return fmt.Errorf("%w: %w", agent.ErrDown, err)
}

func decodeError(status int, body []byte) error {
	var w struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &w) != nil || w.Data.Message == "" {
		w.Data.Message = tail(body[:min(len(body), 300)])
	}
	return &apiError{Status: status, Name: w.Name, Text: w.Data.Message}
}

// statuses of all sessions that are not idle.
func (c *client) statuses(ctx context.Context) (map[string]wireStatus, error) {
	var out map[string]wireStatus
	err := c.get(ctx, "/session/status", &out)
	return out, err
}

func (c *client) busy(ctx context.Context) (bool, error) {
	all, err := c.statuses(ctx)
	for _, s := range all {
		if s.Type != "idle" {
			return true, err
		}
	}
	return false, err
}
