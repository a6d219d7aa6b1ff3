package e2b

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// envd speaks with E2B's daemon in a box, by which the guest gets there. It
// needs two things of it: to run a short script, and to bring a file in.
type envd struct {
	http  *http.Client
	door  door
	token string
}

func (p *Provider) envd(box string, a access) (*envd, error) {
	d, err := p.door(box, a, envdPort)
	return &envd{http: p.api.http, door: d, token: a.Envd}, err
}

// script is a short program for /bin/sh. What it starts and leaves behind has
// to let go of its output: envd waits for that.
type script struct {
	user, text string
	env        map[string]string
}

// run runs a script to its end. When ctx ends first, the script goes on.
//
// No deadline is told to envd, as it would kill the process then; and no tag,
// as looking processes up by one does not work.
func (e *envd) run(ctx context.Context, s script) (result, error) {
	message, err := json.Marshal(map[string]any{
		"process": map[string]any{"cmd": "/bin/sh", "args": []string{"-c", s.text}, "envs": s.env, "cwd": "/"},
		"stdin":   false,
	})
	if err != nil {
		return result{}, fmt.Errorf("encoding a script: %w", err)
	}
	request, err := e.request(ctx, "/process.Process/Start", bytes.NewReader(envelope(message)))
	if err != nil {
		return result{}, err
	}
	request.Header.Set("Content-Type", "application/connect+json")
	request.Header.Set("Connect-Protocol-Version", "1")
	request.Header.Set("Keepalive-Ping-Interval", "50") // seconds
	request.Header.Set("Authorization", basic(s.user))
	response, err := e.do(ctx, request)
	if err != nil {
		return result{}, err
	}
	defer func() { _ = response.Body.Close() }()
	res, err := readResult(response.Body)
	if err != nil && ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	return res, err
}

// basic names the user that a process runs as. There is no password: who may
// ask at all is for the token to say.
func basic(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"))
}

// upload writes a file as root, and makes its parents. It is not atomic.
func (e *envd) upload(ctx context.Context, path string, data io.Reader, size int64) error {
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	if _, err := form.CreateFormFile("file", path); err != nil {
		return err
	}
	tail := "\r\n--" + form.Boundary() + "--\r\n"
	length := int64(head.Len()) + size + int64(len(tail))
	query := url.Values{"path": {path}, "username": {"root"}}
	request, err := e.request(ctx, "/files?"+query.Encode(), io.MultiReader(&head, data, strings.NewReader(tail)))
	if err != nil {
		return err
	}
	request.ContentLength = length
	request.Header.Set("Content-Type", form.FormDataContentType())
	response, err := e.do(ctx, request)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody))
	return response.Body.Close()
}

func (e *envd) request(ctx context.Context, target string, body io.Reader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(e.door.url.String(), "/")+target, body)
	if err != nil {
		return nil, fmt.Errorf("asking envd: %w", err)
	}
	for name, values := range e.door.header {
		request.Header[name] = values
	}
	request.Header.Set("X-Access-Token", e.token)
	return request, nil
}

// do returns an answer of status 200, whose body the caller closes.
func (e *envd) do(ctx context.Context, request *http.Request) (*http.Response, error) {
	response, err := e.http.Do(request)
	if err != nil {
		return nil, unreached(ctx, err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, unreached(ctx, err)
	}
	return nil, proxyFault(response.StatusCode, response.Header, body)
}
