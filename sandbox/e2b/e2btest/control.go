package e2btest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Order is the body of a create, as far as it is known here.
type Order struct {
	Template string            `json:"templateID"`
	Timeout  *int64            `json:"timeout"`
	Secure   bool              `json:"secure"`
	Internet *bool             `json:"allow_internet_access"`
	Network  Network           `json:"network"`
	Metadata map[string]string `json:"metadata"`
}

// Network is who may reach a box, and whom it may reach.
type Network struct {
	PublicTraffic *bool    `json:"allowPublicTraffic"`
	AllowOut      []string `json:"allowOut"`
	DenyOut       []string `json:"denyOut"`
}

// control is the API.
func (s *Server) control() http.Handler {
	mux := http.NewServeMux()
	for _, route := range []struct {
		pattern, name string
		handle        http.HandlerFunc
	}{
		{"POST /sandboxes", "create", s.create},
		{"GET /v2/sandboxes", "list", s.list},
		{"GET /sandboxes/{id}", "get", s.onBox(get)},
		{"POST /sandboxes/{id}/connect", "connect", s.onBox(s.connect)},
		{"POST /sandboxes/{id}/pause", "pause", s.onBox(s.pause)},
		{"POST /sandboxes/{id}/timeout", "timeout", s.onBox(timeout)},
		{"POST /sandboxes/{id}/refreshes", "refreshes", s.onBox(refreshes)},
		{"DELETE /sandboxes/{id}", "destroy", s.onBox(s.destroy)},
	} {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) {
			s.strike(w, r, route.name, s.admitted(route.handle))
		})
	}
	return mux
}

// admitted turns away whom E2B does not know, and who asks too often.
func (s *Server) admitted(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-KEY") != Key {
			s.note("a wrong API key at %s", r.URL.Path)
			writeJSON(w, http.StatusUnauthorized, `{"code":401,"message":"the API key is not valid"}`)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tooOften() {
			w.Header().Set("Retry-After", "1")
			w.Header().Set("RateLimit-Remaining", "0")
			writeJSON(w, http.StatusTooManyRequests, `{"code":429,"message":"Rate limit exceeded"}`)
			return
		}
		next(w, r)
	}
}

func (s *Server) tooOften() bool {
	now := time.Now()
	for len(s.calls) > 0 && now.Sub(s.calls[0]) > time.Second {
		s.calls = s.calls[1:]
	}
	if s.options.Rate > 0 && len(s.calls) >= s.options.Rate {
		return true
	}
	s.calls = append(s.calls, now)
	return false
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	body, _ := json.Marshal(map[string]any{"code": status, "message": fmt.Sprintf(format, args...)})
	writeJSON(w, status, string(body))
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var o Order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		refuse(w, http.StatusBadRequest, "the body cannot be read: %v", err)
		return
	}
	s.judge(o)
	running := 0
	for _, b := range s.sorted() {
		if !b.paused {
			running++
		}
	}
	switch {
	case o.Template != Template:
		refuse(w, http.StatusNotFound, "template '%s' not found", o.Template)
	case s.options.Concurrent > 0 && running >= s.options.Concurrent:
		refuse(w, http.StatusTooManyRequests, "you have reached the maximum number of concurrent E2B sandboxes (%d)", s.options.Concurrent)
	case o.Network.PublicTraffic != nil && !*o.Network.PublicTraffic && !o.Secure:
		refuse(w, http.StatusBadRequest, "allowPublicTraffic false needs secure")
	case o.Timeout != nil && time.Duration(*o.Timeout)*time.Second > s.options.MaxLife:
		refuse(w, http.StatusBadRequest, "Timeout cannot be greater than %s", s.options.MaxLife)
	default:
		b, err := s.make(o)
		if err != nil {
			refuse(w, http.StatusInternalServerError, "%v", err)
			return
		}
		reply(w, http.StatusCreated, b.entrance())
	}
}

// judge notes what a careful client does not leave to E2B's defaults.
func (s *Server) judge(o Order) {
	if o.Timeout == nil || *o.Timeout <= 0 {
		s.note("a box without a timeout")
	}
	if !o.Secure {
		s.note("a box that is not secure")
	}
	if o.Network.PublicTraffic == nil || *o.Network.PublicTraffic {
		s.note("a box that everybody can reach")
	}
	if o.Internet == nil || *o.Internet || len(o.Network.DenyOut) != 1 || o.Network.DenyOut[0] != "0.0.0.0/0" {
		s.note("a box that can reach everybody")
	}
}

func reply(w http.ResponseWriter, status int, value any) {
	body, _ := json.Marshal(value)
	writeJSON(w, status, string(body))
}

// entrance is what create and connect answer.
func (b *box) entrance() map[string]any {
	return map[string]any{
		"sandboxID": b.id, "templateID": b.order.Template, "clientID": "", "envdVersion": "0.6.13",
		"envdAccessToken": b.envdToken, "trafficAccessToken": b.traffic, "domain": nil,
	}
}

// describe is what lists hold.
func (b *box) describe() map[string]any {
	return map[string]any{
		"sandboxID": b.id, "templateID": b.order.Template, "clientID": "", "envdVersion": "0.6.13",
		"state": b.state(), "startedAt": b.started.UTC(), "endAt": b.ends.UTC(), "metadata": b.order.Metadata,
		"cpuCount": 2, "memoryMB": 512,
	}
}

// onBox answers 404 where there is no such box. The lock is held throughout.
func (s *Server) onBox(next func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b := s.find(r.PathValue("id"))
		if b == nil {
			refuse(w, http.StatusNotFound, "sandbox %q doesn't exist", r.PathValue("id"))
			return
		}
		next(w, r, b)
	}
}

// get tells envd's token, but not the one for other ports.
func get(w http.ResponseWriter, _ *http.Request, b *box) {
	d := b.describe()
	d["envdAccessToken"], d["domain"] = b.envdToken, nil
	reply(w, http.StatusOK, d)
}

// amount reads {name: seconds}.
func amount(w http.ResponseWriter, r *http.Request, name string) (time.Duration, bool) {
	var body map[string]int64
	err := json.NewDecoder(r.Body).Decode(&body)
	n, ok := body[name]
	if err != nil || !ok || n < 0 {
		refuse(w, http.StatusBadRequest, "%s is missing", name)
		return 0, false
	}
	return time.Duration(n) * time.Second, true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// connect only extends a box that runs; one that was paused begins a new life.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, b *box) {
	d, ok := amount(w, r, "timeout")
	if !ok {
		return
	}
	if !b.paused {
		b.ends = later(b.ends, time.Now().Add(d))
		reply(w, http.StatusOK, b.entrance())
		return
	}
	if err := b.resume(s); err != nil {
		refuse(w, http.StatusInternalServerError, "%v", err)
		return
	}
	b.started = time.Now()
	b.ends = b.started.Add(d)
	reply(w, http.StatusCreated, b.entrance())
}

func (s *Server) pause(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Memory *bool `json:"memory"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, "the body cannot be read: %v", err)
		return
	}
	if b.paused {
		refuse(w, http.StatusConflict, "sandbox %q is already paused", b.id)
		return
	}
	if err := b.pause(body.Memory == nil || *body.Memory); err != nil {
		refuse(w, http.StatusInternalServerError, "%v", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func timeout(w http.ResponseWriter, r *http.Request, b *box) {
	if d, ok := amount(w, r, "timeout"); ok {
		b.ends = time.Now().Add(d)
		w.WriteHeader(http.StatusNoContent)
	}
}

func refreshes(w http.ResponseWriter, r *http.Request, b *box) {
	d, ok := amount(w, r, "duration")
	switch {
	case !ok:
	case d > time.Hour:
		refuse(w, http.StatusBadRequest, "duration is more than 3600")
	case b.paused:
		refuse(w, http.StatusNotFound, "sandbox %q is not running", b.id)
	default:
		b.ends = later(b.ends, time.Now().Add(max(d, 15*time.Second)))
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Server) destroy(w http.ResponseWriter, _ *http.Request, b *box) {
	b.remove()
	delete(s.boxes, b.id)
	w.WriteHeader(http.StatusNoContent)
}

// list pages through the boxes. The token of a page is when the last box of the
// page before was started: a box that goes meanwhile hides no other.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	filter, err := url.ParseQuery(r.FormValue("metadata"))
	limit, bad := strconv.Atoi(r.FormValue("limit"))
	if err != nil || bad != nil || limit < 1 || limit > 100 {
		refuse(w, http.StatusBadRequest, "metadata or limit cannot be read")
		return
	}
	if s.options.PageSize > 0 {
		limit = min(limit, s.options.PageSize)
	}
	after, _ := strconv.ParseInt(r.FormValue("nextToken"), 10, 64)
	page, last := []map[string]any{}, int64(0)
	for _, b := range s.sorted() {
		started := b.started.UnixNano()
		if started <= after || !b.matches(filter, strings.Split(r.FormValue("state"), ",")) {
			continue
		}
		if len(page) == limit {
			w.Header().Set("X-Next-Token", strconv.FormatInt(last, 10))
			break
		}
		page, last = append(page, b.describe()), started
	}
	reply(w, http.StatusOK, page)
}

func (b *box) matches(filter url.Values, states []string) bool {
	for name, values := range filter {
		if got, ok := b.order.Metadata[name]; !ok || got != values[0] {
			return false
		}
	}
	for _, state := range states {
		if state == b.state() {
			return true
		}
	}
	return false
}
