package opencode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"ship/sandbox"
)

const (
	// silent is how long the event stream may say nothing. It beats every 10
	// seconds.
	silent = 45 * time.Second
	// Between two attempts to read the stream.
	minReconnect = 500 * time.Millisecond
	maxReconnect = 15 * time.Second
	// eventHead is how much of an event is looked at: enough for its type.
	eventHead = 512
)

var errSilent = errors.New("event stream was silent")

// Hints reads the server's event stream, and reads it again when it breaks. The
// stream has no memory, which is why it is a hint only.
func (h *handle) Hints(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	go func() {
		defer close(hints)
		for wait := minReconnect; ctx.Err() == nil; wait = min(2*wait, maxReconnect) {
			if h.listen(ctx, hints) {
				wait = minReconnect
			}
			if sandbox.Sleep(ctx, wait) != nil {
				return
			}
		}
	}()
	return hints
}

// listen reads one stream to its end and says whether it heard anything. Why it
// ended does not matter: the snapshots find out what is wrong.
func (h *handle) listen(ctx context.Context, hints chan<- struct{}) (heard bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(silent, func() { cancel(errSilent) })
	defer watchdog.Stop()
	body, err := h.client.Load().stream(ctx, "/event")
	if err != nil {
		return false
	}
	defer body.Close()
	r := bufio.NewReaderSize(body, eventHead)
	for {
		line, err := readHead(r)
		if err != nil {
			return heard
		}
		heard = true
		watchdog.Reset(silent)
		h.hear(eventType(line), hints)
	}
}

// hear turns one event into a hint, if it is about work.
func (h *handle) hear(kind string, hints chan<- struct{}) {
	switch kind {
	case "message.part.updated", "message.part.delta":
		h.moves.Add(1)
	case "message.updated", "session.status", "session.idle", "session.error", "permission.asked", "question.asked", "server.connected":
	default:
		return
	}
	select {
	case hints <- struct{}{}:
	default:
	}
}

// readHead reads one line and returns its beginning; lines can be megabytes.
func readHead(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	head := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	if err != nil {
		return nil, fmt.Errorf("read event: %w", err)
	}
	return head, nil
}

// An event is `data: {"id":"evt_…","type":"…","properties":…`.
var eventPattern = regexp.MustCompile(`^data: ?\{(?:"id":"[^"]*",)?"type":"([a-z0-9._-]+)"`)

// eventType returns the type of an event, or nothing.
func eventType(line []byte) string {
	m := eventPattern.FindSubmatch(line)
	if m == nil {
		return ""
	}
	return string(m[1])
}

// stream opens a response without end. The context ends it.
func (c *client) stream(ctx context.Context, path string) (io.ReadCloser, error) {
	resp, err := c.send(ctx, exchange{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, &apiError{Status: resp.StatusCode}
	}
	return resp.Body, nil
}
