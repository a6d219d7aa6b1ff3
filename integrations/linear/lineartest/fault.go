package lineartest

import (
	"net/http"
	"time"
)

// Fault is something that goes wrong, once unless Times says otherwise.
type Fault struct {
	// Operation that it strikes: the name of one of graphql/linear, or "token"
	// or "revoke" for OAuth; empty: any.
	Operation string
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

// Failing is an answer of Linear's own that nothing was done: its errors have
// status 200 or 400, and this code.
func Failing(operation string, status int, code, message string) Fault {
	p := problem{status: status, kind: "other", code: code, message: message}
	return Fault{Operation: operation, Status: status, Body: string(p.body(""))}
}

// Limited is the answer when the hour's allowance is used up until reset.
func Limited(operation string, reset time.Time) Fault {
	return Fault{
		Operation: operation, Status: errLimited.status, Body: string(errLimited.body("")),
		Header: usage{reset: reset}.header(allowance{requests: 5000, complexity: 2_000_000}, 0),
	}
}

// strike counts the request and returns the fault that is due, if any.
func (s *Server) strike(operation string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[operation]++
	for _, f := range s.faults {
		if (f.Operation != "" && f.Operation != operation) || f.Times == 0 {
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
// whether that was all. Lost answers are for the caller: see dropped.
func (s *Server) faulty(w http.ResponseWriter, r *http.Request, operation string) bool {
	f := s.strike(operation)
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
