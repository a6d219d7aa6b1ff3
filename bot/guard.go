package bot

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// guard turns a panic of a mounted handler into a 500, or into a broken
// connection when an answer has begun, so that nobody takes half of it for
// the whole.
type guard struct {
	next  http.Handler
	mount string
	log   *slog.Logger
}

func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := &tracked{ResponseWriter: w}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(http.ErrAbortHandler)
		}
		g.log.ErrorContext(r.Context(), "handler panicked", "mount", g.mount, "panic", p, "stack", string(debug.Stack()))
		if t.begun {
			panic(http.ErrAbortHandler)
		}
		answer(w, http.StatusInternalServerError, "internal error")
	}()
	g.next.ServeHTTP(t, r)
}

// tracked knows whether an answer has begun.
type tracked struct {
	http.ResponseWriter
	begun bool
}

func (t *tracked) WriteHeader(status int) {
	t.begun = t.begun || status >= http.StatusOK
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracked) Write(b []byte) (int, error) {
	t.begun = true
	return t.ResponseWriter.Write(b)
}

// Flush serves those who stream without a ResponseController.
func (t *tracked) Flush() {
	t.begun = true
	_ = http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (t *tracked) Unwrap() http.ResponseWriter { return t.ResponseWriter }
