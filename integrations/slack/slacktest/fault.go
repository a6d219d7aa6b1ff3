package slacktest

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Fault is something that goes wrong, once unless Times says otherwise.
type Fault struct {
	// Method that it strikes, such as chat.postMessage; also "response_url",
	// "file" for downloads and "socket" for the WebSocket's handshake; empty: any.
	Method string
	// Skip lets so many requests through first; Times strikes so often (zero:
	// once, negative: always).
	Skip, Times int
	// Do is called first; nil: nothing.
	Do func(*http.Request)

	// Status answers instead of doing anything, with Header and Body.
	Status int
	Header http.Header
	Body   string
	// Hang does nothing and never answers.
	Hang bool
	// Lost does what was asked and drops the connection instead of answering.
	Lost bool
}

// Inject makes something go wrong. Faults are tried in the order in which
// they were injected.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &f)
}

// ClearFaults ends all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Failing is an answer of Slack's own that nothing was done: its errors have
// status 200, and this code.
func Failing(method, code string) Fault {
	return Fault{Method: method, Status: http.StatusOK, Body: string(mustJSON(object{"ok": false, "error": code}))}
}

// Limited is the answer when a method is called too often. Slack counts in
// whole seconds.
func Limited(method string, after time.Duration) Fault {
	return Fault{
		Method: method, Status: http.StatusTooManyRequests, Body: `{"ok":false,"error":"ratelimited"}`,
		Header: http.Header{"Retry-After": {strconv.Itoa(seconds(after))}},
	}
}

// strike counts the request and returns the fault that is due, if any.
func (s *Server) strike(method string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[method]++
	for _, f := range s.faults {
		if (f.Method != "" && f.Method != method) || f.Times == 0 {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		struck := *f
		return &struck
	}
	return nil
}

// faulty does what a fault does before the request is looked at, and says
// whether that was all. Lost answers are for withDrops.
func (s *Server) faulty(w http.ResponseWriter, r *http.Request, method string) bool {
	f := s.strike(method)
	if f == nil {
		return false
	}
	if f.Do != nil {
		f.Do(r)
	}
	switch {
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		for key, values := range f.Header {
			w.Header()[key] = values
		}
		write(w, f.Status, []byte(f.Body))
		return true
	case f.Lost:
		if d, ok := w.(*dropped); ok {
			d.drop = true
		}
	}
	return false
}

// dropped is an answer that may not reach the client, although what was asked
// for is done.
type dropped struct {
	http.ResponseWriter
	drop bool
}

// Hijack lets the WebSocket take over the connection.
func (d *dropped) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(d.ResponseWriter).Hijack()
}

func (d *dropped) Write(b []byte) (int, error) {
	if d.drop {
		return len(b), nil
	}
	return d.ResponseWriter.Write(b)
}

func (d *dropped) WriteHeader(status int) {
	if !d.drop {
		d.ResponseWriter.WriteHeader(status)
	}
}

// withDrops ends the connection of an answer that was to be dropped.
func withDrops(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := &dropped{ResponseWriter: w}
		next.ServeHTTP(d, r)
		if d.drop {
			panic(http.ErrAbortHandler)
		}
	})
}

// write answers with JSON.
func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client left
}
