package githubtest

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Fault is something that goes wrong, once unless Times says otherwise.
type Fault struct {
	// Route that it strikes, as in "POST /repos/{owner}/{repo}/pulls", "POST
	// /graphql", or "GIT receive-pack"; empty: any.
	Route string
	// Skip lets so many requests through first; Times strikes so often (zero:
	// once, negative: always).
	Skip, Times int
	// Do is called first, when the whole request has arrived: whatever becomes of
	// the client then, the request is on its way. nil: nothing.
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

// SecondaryLimit is GitHub's answer to writing too fast.
func SecondaryLimit(route string, retryAfter time.Duration) Fault {
	return Fault{
		Route: route, Status: http.StatusForbidden,
		Header: http.Header{"Retry-After": {strconv.Itoa(int(retryAfter.Seconds()))}},
		Body:   `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`,
	}
}

// PrimaryLimit is GitHub's answer when the hour's requests are used up.
func PrimaryLimit(route string, reset time.Time) Fault {
	return Fault{
		Route: route, Status: http.StatusForbidden,
		Header: http.Header{
			"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"0"},
			"X-Ratelimit-Reset": {strconv.FormatInt(reset.Unix(), 10)},
		},
		Body: `{"message":"API rate limit exceeded for installation.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}`,
	}
}

// strike counts the request and returns the fault that is due, if any.
func (s *Server) strike(route string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[route]++
	for _, f := range s.faults {
		if (f.Route != "" && f.Route != route) || f.Times == 0 {
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
func (s *Server) faulty(w http.ResponseWriter, r *http.Request, route string) bool {
	f := s.strike(route)
	if f == nil {
		return false
	}
	if f.Do != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return true // the client left
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
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
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body)) // the client left
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
