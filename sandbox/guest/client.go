package guest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"ship/sandbox"
)

// Route is the way to a guest.
type Route struct {
	// Dial connects to the guest. It wraps sandbox.ErrGone when the box is
	// known not to exist any more; every other error counts as passing.
	Dial func(ctx context.Context) (net.Conn, error)
	// Secret is that of the guest; empty if it has none.
	Secret string

	// What follows is for a way that leads through somebody's proxy, and may
	// all be empty. Host and Header go with every request.
	Host   string
	Header http.Header
	// URL is what the guest's paths are appended to, and Transport carries
	// requests there. Without it, every request has a connection of Dial's.
	URL       string
	Transport http.RoundTripper
	// Framed: the proxy lets nothing but WebSockets through to a port.
	Framed bool
	// Explain returns the error behind an answer that is not the guest's own.
	// nil: it counts as passing.
	Explain func(status int, header http.Header, body []byte) error
}

// Client speaks with a guest. It is a sandbox.Box, holds no connection between
// two calls, and may be used concurrently.
type Client struct {
	route Route
	http  *http.Client
}

var _ sandbox.Box = (*Client)(nil)

// NewClient returns a client; it does not connect.
func NewClient(route Route) *Client {
	if route.Transport == nil {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return route.Dial(ctx) }
		route.Transport = &http.Transport{DialContext: dial, DisableKeepAlives: true}
	}
	route.URL = cmp.Or(route.URL, "http://guest")
	return &Client{route: route, http: &http.Client{Transport: route.Transport, CheckRedirect: noRedirect}}
}

// noRedirect: what a proxy has to say is an answer, not a place to go with our
// secrets.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Health asks the guest whose box it is: the no-op with a known answer.
func (c *Client) Health(ctx context.Context) (box string, err error) {
	var h health
	err = c.json(ctx, http.MethodGet, "/v1/health", nil, &h)
	return h.Box, err
}

// Spawn starts a process; see sandbox.Box. A program or a folder that does not
// exist is fs.ErrNotExist, and may be tried again under the same name.
func (c *Client) Spawn(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	var p sandbox.Process
	// JSON would make another name of one that is no text.
	if err := sendable(cmd.Dir); err != nil || !utf8.ValidString(cmd.Dir) {
		return p, fault("entering", cmd.Dir, cmp.Or(err, errNoText))
	}
	body, err := json.Marshal(cmd)
	if err != nil {
		return p, fmt.Errorf("encoding the command: %w", err)
	}
	err = c.json(ctx, http.MethodPost, "/v1/processes", body, &p)
	return p, err
}

// Process returns the state of one process; see sandbox.Box.
func (c *Client) Process(ctx context.Context, name string) (sandbox.Process, error) {
	var p sandbox.Process
	if validName(name) != nil { // and the path might be another one
		return p, fmt.Errorf("process %q: %w", name, sandbox.ErrGone)
	}
	err := c.json(ctx, http.MethodGet, "/v1/processes/"+url.PathEscape(name), nil, &p)
	return p, err
}

// Kill ends a process group; see sandbox.Box. It also ends what has left the
// group, as long as it has not hidden where it comes from.
func (c *Client) Kill(ctx context.Context, name string, grace time.Duration) error {
	if validName(name) != nil {
		return fmt.Errorf("process %q: %w", name, sandbox.ErrGone)
	}
	target := "/v1/processes/" + url.PathEscape(name) + "/kill?grace=" + grace.String()
	return c.json(ctx, http.MethodPost, target, nil, nil)
}

// ReadFrom returns part of a file; see sandbox.Box.
func (c *Client) ReadFrom(ctx context.Context, path string, off int64) ([]byte, error) {
	if err := sendable(path); err != nil {
		return nil, fault("reading", path, err)
	}
	query := url.Values{"path": {path}, "offset": {strconv.FormatInt(off, 10)}}
	return c.call(ctx, http.MethodGet, "/v1/file?"+query.Encode(), nil)
}

// Write replaces a file of at most 64 MiB; see sandbox.Box.
func (c *Client) Write(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	if err := sendable(path); err != nil {
		return fault("writing", path, err)
	}
	if len(data) > maxFile {
		return fault("writing", path, fmt.Errorf("it is larger than %d MiB: %w", maxFile>>20, fs.ErrInvalid))
	}
	query := url.Values{"path": {path}, "mode": {strconv.FormatUint(uint64(mode.Perm()), 8)}}
	_, err := c.call(ctx, http.MethodPut, "/v1/file?"+query.Encode(), data)
	return err
}

// maxPath is the longest path that Linux takes, in bytes; see PATH_MAX in
// linux/limits.h, which counts a zero byte at the end.
const maxPath = 4095

var errNoText = fmt.Errorf("it is not valid UTF-8: %w", fs.ErrInvalid)

// sendable refuses what a server on the way may refuse as too long, in words that
// would sound as if it could pass.
func sendable(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("it is longer than %d bytes: %w", maxPath, fs.ErrInvalid)
	}
	return nil
}

func (c *Client) json(ctx context.Context, method, target string, body []byte, value any) error {
	answer, err := c.call(ctx, method, target, body)
	if err != nil || value == nil {
		return err
	}
	if err := json.Unmarshal(answer, value); err != nil {
		return fmt.Errorf("decoding the guest's answer: %w: %w", sandbox.ErrTransient, err)
	}
	return nil
}

func (c *Client) call(ctx context.Context, method, target string, body []byte) ([]byte, error) {
	request, err := c.request(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, passing(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 2*maxRead))
	if err != nil {
		return nil, passing(ctx, err)
	}
	if response.StatusCode >= 300 {
		return nil, c.meaning(response, answer)
	}
	return answer, nil
}

func (c *Client) request(ctx context.Context, method, target string, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.route.URL+target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking the guest: %w", err)
	}
	for name, values := range c.route.Header {
		request.Header[name] = values
	}
	if c.route.Secret != "" {
		request.Header.Set("Authorization", bearer(c.route.Secret))
	}
	request.Host = cmp.Or(c.route.Host, request.Host)
	return request, nil
}

// Dial connects to a TCP port of the box; see sandbox.Box. A port that nobody
// listens on is sandbox.ErrTransient and syscall.ECONNREFUSED.
func (c *Client) Dial(ctx context.Context, port int) (net.Conn, error) {
	return c.dial(ctx, "/v1/dial?port="+strconv.Itoa(port))
}

// dial asks for what turns a connection into something else.
func (c *Client) dial(ctx context.Context, target string) (net.Conn, error) {
	request, err := c.request(ctx, http.MethodPost, target, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "tcp")
	if c.route.Framed {
		askFramed(request)
	}
	outer, err := c.route.Dial(ctx)
	if err != nil {
		return nil, passing(ctx, err)
	}
	conn, err := c.upgrade(ctx, outer, request)
	if err != nil {
		_ = outer.Close()
		return nil, err
	}
	return conn, nil
}

func (c *Client) upgrade(ctx context.Context, outer net.Conn, request *http.Request) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = outer.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := request.Write(outer); err != nil {
		return nil, passing(ctx, err)
	}
	buffered := bufio.NewReader(outer)
	response, err := http.ReadResponse(buffered, request)
	if err != nil {
		return nil, passing(ctx, err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		answer, _ := io.ReadAll(io.LimitReader(response.Body, maxRead))
		return nil, c.meaning(response, answer)
	}
	if !stop() {
		return nil, passing(ctx, context.Cause(ctx))
	}
	if c.route.Framed {
		return &framed{Conn: outer, in: buffered, mask: true}, grantedFramed(request, response)
	}
	return &conn{Conn: outer, buffered: buffered}, nil
}

// conn is a connection of which some bytes have been read already.
type conn struct {
	net.Conn
	buffered *bufio.Reader
}

func (c *conn) Read(p []byte) (int, error) { return c.buffered.Read(p) }

// CloseWrite tells the other side that no more will come.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// passing is the error of a call that got no answer: what became of it is not
// known.
func passing(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, sandbox.ErrGone) {
		return fmt.Errorf("reaching the guest: %w", err)
	}
	return fmt.Errorf("reaching the guest: %w: %w", sandbox.ErrTransient, err)
}

// meaning turns the guest's refusal back into the error that it was.
func (c *Client) meaning(response *http.Response, answer []byte) error {
	var f failure
	if err := json.Unmarshal(answer, &f); err != nil || f.Code == "" {
		if c.route.Explain != nil {
			return c.route.Explain(response.StatusCode, response.Header, answer)
		}
		return fmt.Errorf("the guest answered with status %d: %w", response.StatusCode, sandbox.ErrTransient)
	}
	if f.Code == "closed_port" {
		return fmt.Errorf("%w: %w: %w", sandbox.ErrTransient, errClosedPort, syscall.ECONNREFUSED)
	}
	for _, known := range refusals {
		if known.code == f.Code {
			return &refusal{f.Message, known.err}
		}
	}
	return fmt.Errorf("in the box: %s", f.Message)
}

// refusal is an error that happened inside the box.
type refusal struct {
	message string
	kind    error
}

func (r *refusal) Error() string { return "in the box: " + r.message }
func (r *refusal) Unwrap() error { return r.kind }
