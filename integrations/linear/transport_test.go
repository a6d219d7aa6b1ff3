package linear

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/session"
	"ship/session/memory"
)

// api is Linear's API, with whatever answers.
type api struct {
	*httptest.Server
	mu       sync.Mutex
	seen     []string // token and body of each request
	answer   http.HandlerFunc
	governor *Governor
	quota    listener
	tokens   *Tokens
	log      bytes.Buffer
}

func newAPI(t *testing.T, o *oauth, answer http.HandlerFunc) *api {
	a := &api{answer: answer, tokens: o.gateway(&memory.Vault{})}
	a.governor = NewGovernor(&a.quota)
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		a.mu.Lock()
		a.seen = append(a.seen, r.Header.Get("Authorization")+" "+string(body))
		a.mu.Unlock()
		a.answer(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *api) client() *http.Client {
	return &http.Client{Transport: &Transport{
		Organization: org, Tokens: a.tokens, Governor: a.governor,
		Next: &http.Transport{DisableKeepAlives: true}, Logger: slog.New(slog.NewTextHandler(&a.log, nil)),
	}}
}

func (a *api) post(t *testing.T) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL, strings.NewReader("query"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := a.client().Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// TestTransport: the token goes along, and the governor learns.
func TestTransport(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	a := newAPI(t, o, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Requests-Limit", "5000")
		w.Header().Set("X-RateLimit-Requests-Remaining", "17")
		fmt.Fprint(w, `{"data":{}}`)
	})
	status, body, err := a.post(t)
	if err != nil || status != http.StatusOK || body != `{"data":{}}` {
		t.Errorf("%d %s, %v", status, body, err)
	}
	if len(a.seen) != 1 || a.seen[0] != "Bearer access-1 query" {
		t.Errorf("seen %q", a.seen)
	}
	if r := a.quota.rates; len(r) != 1 || r[0].Left[0] != 17 {
		t.Errorf("learned %+v", r)
	}
}

// TestRefusedToken: once more, with another and with the whole body; and not a
// third time.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	for _, good := range []bool{true, false} {
		o := newOAuth(t)
		a := newAPI(t, o, nil)
		a.answer = func(w http.ResponseWriter, r *http.Request) {
			if !good || r.Header.Get("Authorization") == "Bearer access-1" {
				o.advance(restAfter)
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"errors":[{"extensions":{"code":"AUTHENTICATION_ERROR"}}]}`)
			}
		}
		status, _, err := a.post(t)
		want := map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized}[good]
		if err != nil || status != want {
			t.Errorf("good %t: %d, %v", good, status, err)
		}
		if got := strings.Join(a.seen, ", "); got != "Bearer access-1 query, Bearer access-2 query" {
			t.Errorf("seen %s", got)
		}
	}
}

// TestRefusedForTheRate: a 400 that says so is a 429, and all keep quiet.
func TestRefusedForTheRate(t *testing.T) {
	t.Parallel()
	a := newAPI(t, newOAuth(t), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"errors":[{"extensions":{"code":"RATELIMITED"}}]}`)
	})
	status, body, err := a.post(t)
	if err != nil || status != http.StatusTooManyRequests || !strings.Contains(body, "RATELIMITED") {
		t.Errorf("%d %s, %v", status, body, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := a.governor.Acquire(ctx, org, Settling, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestTokenStaysHere: Linear cannot send the token elsewhere.
func TestTokenStaysHere(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%q came elsewhere", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	a := newAPI(t, newOAuth(t), func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	if _, _, err := a.post(t); !errors.Is(err, errRedirect) {
		t.Errorf("got %v", err)
	}
}

// TestAnswersCount: what Linear did is not undone because the governor could
// not be told; what never left is an error.
func TestAnswersCount(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	a := newAPI(t, o, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Requests-Limit", "5000")
		w.Header().Set("X-RateLimit-Requests-Remaining", "17")
	})
	a.governor = NewGovernor(deaf{})
	if status, _, err := a.post(t); err != nil || status != http.StatusOK || strings.Count(a.log.String(), "level=WARN") != 1 {
		t.Errorf("%d, %v; log:\n%s", status, err, a.log.String())
	}
	a.Close()
	if _, _, err := a.post(t); err == nil {
		t.Error("nobody answered")
	}
	o.Close()
	a.tokens = o.gateway(&memory.Vault{})
	if _, _, err := a.post(t); !problemOf(t, err).Again {
		t.Errorf("got %v", err)
	}
}

// deaf is a quota that is not there.
type deaf struct{}

var errDeaf = errors.New("quota is gone")

func (deaf) Take(context.Context, string, session.Allowance) (time.Duration, error) {
	return 0, errDeaf
}
func (deaf) Tell(context.Context, string, session.Rate) error { return errDeaf }

func TestAcquireWithoutQuota(t *testing.T) {
	t.Parallel()
	if err := NewGovernor(deaf{}).Acquire(t.Context(), "acme", Settling, 1); !errors.Is(err, errDeaf) {
		t.Errorf("got %v", err)
	}
}
