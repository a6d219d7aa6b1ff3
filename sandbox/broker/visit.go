package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// visit is one request with a good token. Deadlines of its connection are best
// effort everywhere: a ResponseWriter that has none keeps its server's limits.
type visit struct {
	grant Grant
	w     http.ResponseWriter
	// r has the visit's context: cancelled with a cause.
	r      *http.Request
	rc     *http.ResponseController
	tab    *tab
	cancel context.CancelCauseFunc
	idle   time.Duration
	// silence ends the visit unless it is put off again and again.
	silence *time.Timer

	mu sync.Mutex
	// reading: a body was begun and has not ended. over: the connection is the
	// server's again.
	reading, over bool
}

// newVisit begins a visit that ends when its grant does, or with cancel; done
// follows.
func newVisit(g Grant, w http.ResponseWriter, r *http.Request, idle time.Duration) (v *visit, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	ctx, stop := context.WithDeadlineCause(ctx, g.Expires, ErrExpired)
	v = &visit{grant: g, w: w, r: r.WithContext(ctx), rc: http.NewResponseController(w), cancel: cancel, idle: idle}
	v.silence = time.AfterFunc(idle, func() { cancel(errIdle) })
	v.silence.Stop()
	forget := context.AfterFunc(ctx, v.hangUp)
	return v, func() {
		forget()
		v.handBack()
		stop()
		cancel(nil)
	}
}

// past is a deadline that ends whatever waits now.
func past() time.Time { return time.Unix(1, 0) }

// hangUp ends reading from and writing to the client, which no context does.
func (v *visit) hangUp() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.over {
		_ = v.rc.SetReadDeadline(past())
		_ = v.rc.SetWriteDeadline(past())
	}
}

// handBack gives the connection back to the server. A body that has not ended
// may still be waited for by the transport, and the server would wait for that.
func (v *visit) handBack() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	v.silence.Stop()
	_ = v.rc.SetWriteDeadline(time.Time{})
	if v.reading {
		_ = v.rc.SetReadDeadline(past())
	}
}

// tick says that something moved, and starts the watch for silence; rest ends
// it.
func (v *visit) tick() { v.silence.Reset(v.idle) }
func (v *visit) rest() { v.silence.Stop() }

// explain names the turn in a refusal, and the true reason where a cancelled
// context shows as some fault of the network.
func (v *visit) explain(err error) error {
	if err == nil {
		return nil
	}
	var no *refusal
	cause := context.Cause(v.r.Context())
	switch {
	case errors.As(err, &no):
	case cause != nil && errors.Is(err, errCut):
		no = asRefusal(cause).because(fmt.Errorf("%w: %w", errCut, cause))
	case cause != nil:
		no = asRefusal(cause)
	default:
		no = asRefusal(err)
	}
	no.session, no.turn = v.grant.Session, v.grant.Turn
	return no
}

// body is the request's, without the server's limit on the time that it takes:
// a large push is slow, and silence is watched for here.
func (v *visit) body() io.Reader {
	v.mu.Lock()
	v.reading = true
	v.mu.Unlock()
	v.lift(v.rc.SetReadDeadline)
	return ticking{v}
}

// lift takes a deadline away, unless hangUp has set it or is about to.
func (v *visit) lift(deadline func(time.Time) error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.r.Context().Err() == nil {
		_ = deadline(time.Time{})
	}
}

// ticking reads the client's body.
type ticking struct{ v *visit }

func (t ticking) Read(p []byte) (int, error) {
	n, err := t.v.r.Body.Read(p)
	t.v.tick()
	if err != nil {
		t.v.mu.Lock()
		defer t.v.mu.Unlock()
		t.v.reading = false
	}
	return n, err
}

// answer sends what is short and known whole.
func (v *visit) answer(contentType, body string) error {
	v.w.Header().Set("Content-Type", contentType)
	v.w.Header().Set("Cache-Control", "no-store")
	v.lift(v.rc.SetWriteDeadline)
	if _, err := io.WriteString(v.w, body); err != nil {
		return fmt.Errorf("%w: write to the client: %w", errCut, err)
	}
	return nil
}

// relay copies an answer as it comes, every piece at once, and reports its
// breaking off as errCut. Writing to a client that does not read ends too.
func (v *visit) relay(dst io.Writer, src io.Reader) error {
	v.lift(v.rc.SetWriteDeadline)
	v.tick()
	_ = v.rc.Flush() // the headers: there may be nothing more for long
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		v.tick()
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				return fmt.Errorf("%w: write to the client: %w", errCut, werr)
			}
			_ = v.rc.Flush()
			v.tick()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: read from upstream: %w", errCut, err)
		}
	}
}
