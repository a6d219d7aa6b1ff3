package e2btest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// Fault is something that goes wrong, once unless Times says otherwise. Of
// Status, Hang, Lost and Cut at most one is set.
type Fault struct {
	// On is what it strikes: "create", "list", "get", "connect", "pause",
	// "timeout", "refreshes", "destroy", or "port N" for what goes through the
	// proxy to a port of a box. Empty: anything.
	On string
	// Skip lets so many requests through first; Times strikes so often (zero:
	// once, negative: always).
	Skip, Times int

	// Status answers instead of doing anything, with Header and Body.
	Status int
	Header http.Header
	Body   string
	// Hang does nothing and never answers.
	Hang bool
	// Lost does what was asked and drops the connection instead of answering.
	Lost bool
	// Cut lets so many bytes of the answer's body through, and then drops the
	// connection.
	Cut int
}

// faults are those of one server.
type faults struct {
	mu         sync.Mutex
	all        []*Fault       // guarded by mu
	calls      map[string]int // guarded by mu
	violations []string       // guarded by mu
}

// Inject makes something go wrong. The first fault that is due strikes alone.
func (f *faults) Inject(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fault.Times == 0 {
		fault.Times = 1
	}
	f.all = append(f.all, &fault)
}

// Calls tells how often something was asked for, faults included, in the words
// of Fault.On.
func (f *faults) Calls(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[what]
}

// Violations are what no client should have done, the oldest first.
func (f *faults) Violations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.violations)
}

func (f *faults) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.violations = append(f.violations, fmt.Sprintf(format, args...))
}

// due counts a request and returns the fault that strikes it.
func (f *faults) due(what string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[what]++
	for _, fault := range f.all {
		switch {
		case fault.On != "" && fault.On != what, fault.Times == 0:
		case fault.Skip > 0:
			fault.Skip--
		default:
			if fault.Times > 0 {
				fault.Times--
			}
			return *fault
		}
	}
	return Fault{}
}

// strike serves a request with next, unless something is due to go wrong.
func (f *faults) strike(w http.ResponseWriter, r *http.Request, what string, next http.HandlerFunc) {
	due := f.due(what)
	switch {
	case due.Hang:
		// That the client leaves is only noticed once its request was read.
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case due.Status != 0:
		_, _ = io.Copy(io.Discard, r.Body)
		maps.Copy(w.Header(), due.Header)
		writeJSON(w, due.Status, due.Body)
	case due.Lost:
		next(&swallowed{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	case due.Cut > 0:
		next(&cut{ResponseWriter: w, left: due.Cut}, r)
	default:
		next(w, r)
	}
}

// swallowed is an answer that nobody gets.
type swallowed struct {
	header http.Header
	bytes.Buffer
}

func (s *swallowed) Header() http.Header { return s.header }
func (s *swallowed) WriteHeader(int)     {}

// cut is an answer of which only a part arrives.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cut) Write(p []byte) (int, error) {
	n, _ := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left <= 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

func writeJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
