package e2b

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ship/sandbox"
)

// kinds are all that a caller decides on.
var kinds = []error{
	sandbox.ErrGone, sandbox.ErrBusy, sandbox.ErrQuota, sandbox.ErrAuth, sandbox.ErrTransient,
	sandbox.ErrUnsupported, sandbox.ErrIsolation,
}

// wantKind wants an error to be of one kind alone; nil is none of them.
func wantKind(t *testing.T, err, want error) {
	t.Helper()
	for _, kind := range kinds {
		if is := errors.Is(err, kind); is != (want == kind) {
			t.Errorf("%v: is %q: %t", err, kind, is)
		}
	}
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestAPIFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header http.Header
		body   string
		want   error
		wait   time.Duration
	}{
		"our request":         {status: 400, body: `{"code":400,"message":"Timeout cannot be greater than 1 hours"}`},
		"wrong key":           {status: 401, body: `{"code":401,"message":"Invalid API key"}`, want: sandbox.ErrAuth},
		"blocked team":        {status: 403, body: `{"code":403,"message":"Team is blocked"}`, want: sandbox.ErrAuth},
		"gone":                {status: 404, body: `{"code":404,"message":"Sandbox not found"}`, want: sandbox.ErrGone},
		"changing":            {status: 409, body: `{"code":409,"message":"Sandbox is already paused"}`, want: sandbox.ErrBusy},
		"rate by header":      {429, header("Retry-After", "3"), `{"code":429,"message":"slow down"}`, sandbox.ErrTransient, 3 * time.Second},
		"rate by reset":       {429, header("RateLimit-Reset", "7"), `{"code":429,"message":"slow down"}`, sandbox.ErrTransient, 7 * time.Second},
		"rate by words":       {status: 429, body: `{"code":429,"message":"Rate limit exceeded"}`, want: sandbox.ErrTransient},
		"rate, bad header":    {429, header("Retry-After", "soon"), `{"code":429,"message":"Rate limit exceeded"}`, sandbox.ErrTransient, 0},
		"rate, negative":      {429, header("Retry-After", "-4"), `{"code":429,"message":"Rate limit exceeded"}`, sandbox.ErrTransient, 0},
		"concurrency":         {status: 429, body: `{"code":429,"message":"you have reached the maximum number of concurrent E2B sandboxes (20)"}`, want: sandbox.ErrQuota},
		"no capacity":         {status: 503, body: `{"code":503,"message":"x","error_code":"sandbox_capacity_unavailable"}`, want: sandbox.ErrQuota},
		"placement":           {status: 504, body: `{"code":504,"message":"x","error_code":"sandbox_placement_timeout"}`, want: sandbox.ErrTransient},
		"create failed":       {status: 500, body: `{"code":500,"message":"x","error_code":"sandbox_create_failed"}`, want: sandbox.ErrTransient},
		"unavailable":         {status: 503, body: `{"code":503,"message":"x"}`, want: sandbox.ErrTransient},
		"a balancer's page":   {status: 502, body: `<html>Bad Gateway</html>`, want: sandbox.ErrTransient},
		"nothing":             {status: 504, want: sandbox.ErrTransient},
		"request timeout":     {status: 408, want: sandbox.ErrTransient},
		"a redirect":          {status: 302},
		"another shape":       {status: 404, body: `[1]`, want: sandbox.ErrGone},
		"a code that is null": {status: 500, body: `{"code":null,"message":null}`, want: sandbox.ErrTransient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := apiFault(c.status, c.header, []byte(c.body))
			wantKind(t, f, c.want)
			if f.Wait != c.wait || f.Status != c.status {
				t.Errorf("wait %s, status %d", f.Wait, f.Status)
			}
		})
	}
}

func TestProxyFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"no such box":      {502, `{"sandboxId":"i1","message":"The sandbox was not found","code":502}`, sandbox.ErrGone},
		"port not open":    {502, `{"sandboxId":"i1","message":"The sandbox is running but port is not open","port":4011,"code":502}`, sandbox.ErrTransient},
		"a balancer":       {502, `<html>Bad Gateway</html>`, sandbox.ErrTransient},
		"another 502":      {502, `{"code":502,"message":"upstream"}`, sandbox.ErrTransient},
		"transitioning":    {409, `{"sandboxId":"i1","message":"still transitioning","code":409}`, sandbox.ErrBusy},
		"traffic token":    {403, `{"sandboxId":"i1","message":"token","code":403}`, sandbox.ErrAuth},
		"envd's own":       {401, `{"code":401,"message":"unauthorized"}`, sandbox.ErrAuth},
		"too many":         {429, `{"message":"too many connections","code":429}`, sandbox.ErrTransient},
		"unknown process":  {404, `{"code":"not_found","message":"process not found"}`, nil},
		"connect, unavail": {503, `{"code":"unavailable","message":"x"}`, sandbox.ErrTransient},
		"bad request":      {400, `{"code":"invalid_argument","message":"x"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantKind(t, proxyFault(c.status, nil, []byte(c.body)), c.want)
		})
	}
}

// TestEndError: errors within a stream, which has status 200.
func TestEndError(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]error{
		"invalid_argument": nil, "not_found": nil, "unauthenticated": sandbox.ErrAuth, "permission_denied": sandbox.ErrAuth,
		"unavailable": sandbox.ErrTransient, "deadline_exceeded": sandbox.ErrTransient, "resource_exhausted": sandbox.ErrTransient,
		"aborted": sandbox.ErrTransient, "canceled": sandbox.ErrTransient, "unknown": sandbox.ErrTransient, "internal": nil,
	} {
		err := endError([]byte(`{"error":{"code":"` + code + `","message":"cwd '/nope' does not exist"}}`))
		wantKind(t, err, want)
		if err == nil || !strings.Contains(err.Error(), code) || !strings.Contains(err.Error(), "/nope") {
			t.Errorf("%s: %v", code, err)
		}
	}
	if err := endError([]byte(`{}`)); err != nil {
		t.Errorf("an end without an error: %v", err)
	}
}

// serve is an API that answers as it is told, and counts.
func serve(t *testing.T, handler http.HandlerFunc) *api {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &api{http: server.Client(), url: server.URL, key: "e2b_secret"}
}

// TestRateLimit: a call waits when it is told to, a few times, and no longer
// than is bearable.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		times int
		after string
		calls int
		want  error
	}{
		"once":     {1, "0", 2, nil},
		"for good": {9, "0", maxAsks, sandbox.ErrTransient},
		"too long": {1, "600", 1, sandbox.ErrTransient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if calls++; calls <= c.times {
					w.Header().Set("Retry-After", c.after)
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				_, _ = io.WriteString(w, `{"sandboxID":"i1"}`)
			})
			_, err := a.create(t.Context(), order{})
			if !errors.Is(err, c.want) || calls != c.calls {
				t.Errorf("%d calls, %v", calls, err)
			}
		})
	}
}

func TestRateLimitCancelled(t *testing.T) {
	t.Parallel()
	cause := errors.New("no patience")
	ctx, cancel := context.WithCancelCause(t.Context())
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "9")
		w.WriteHeader(http.StatusTooManyRequests)
		cancel(cause)
	})
	if _, err := a.get(ctx, "i1"); !errors.Is(err, cause) {
		t.Errorf("get: %v", err)
	}
}

// TestCreateUnknownTemplate: no box is gone when a template is.
func TestCreateUnknownTemplate(t *testing.T) {
	t.Parallel()
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":404,"message":"template 'x' not found"}`)
	})
	_, err := a.create(t.Context(), order{})
	wantKind(t, err, nil)
	if err == nil || !strings.Contains(err.Error(), "template") {
		t.Errorf("create: %v", err)
	}
}

// TestNoKeyInErrors: not even when E2B repeats it.
func TestNoKeyInErrors(t *testing.T) {
	t.Parallel()
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"code":401,"message":"`+r.Header.Get("X-API-KEY")+` is not a key"}`)
	})
	_, answered := a.get(t.Context(), "i1")
	a.url = "http://127.0.0.1:1"
	_, unanswered := a.get(t.Context(), "i1")
	for _, err := range []error{answered, unanswered} {
		if err == nil || strings.Contains(err.Error(), a.key) {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestDestroyGone: what is gone is destroyed.
func TestDestroyGone(t *testing.T) {
	t.Parallel()
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	if err := a.destroy(t.Context(), "i1"); err != nil {
		t.Errorf("destroy: %v", err)
	}
}

// TestListDoesNotEnd: half a list is no list.
func TestListDoesNotEnd(t *testing.T) {
	t.Parallel()
	calls := 0
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("X-Next-Token", "again")
		_, _ = io.WriteString(w, `[{"sandboxID":"i1"}]`)
	})
	all, err := a.list(t.Context(), nil)
	if !errors.Is(err, errPages) || all != nil || calls != maxPages {
		t.Errorf("%d boxes after %d pages, %v", len(all), calls, err)
	}
}

func TestEncodeLabels(t *testing.T) {
	t.Parallel()
	var got string
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.RawQuery
		_, _ = io.WriteString(w, `[]`)
	})
	if _, err := a.list(t.Context(), map[string]string{"k": "v", "a b": "c&d=e"}); err != nil {
		t.Fatal(err)
	}
	want := "limit=100&metadata=a%2Bb%3Dc%2526d%253De%26k%3Dv&state=running%2Cpaused"
	if got != want {
		t.Errorf("the query is %s, want %s", got, want)
	}
}

// TestClocks: E2B's clock may be another than ours.
func TestClocks(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		a := serve(t, func(w http.ResponseWriter, r *http.Request) {
			now := time.Now().Add(ahead).UTC()
			w.Header().Set("Date", now.Format(http.TimeFormat))
			body := `{"sandboxID":"i1","endAt":"` + now.Add(time.Minute).Format(time.RFC3339Nano) + `"}`
			if r.URL.Path == "/v2/sandboxes" {
				body = "[" + body + "]"
			}
			_, _ = io.WriteString(w, body)
		})
		begin := time.Now()
		m, err := a.get(t.Context(), "i1")
		all, look := a.list(t.Context(), nil)
		if err != nil || look != nil || len(all) != 1 {
			t.Fatal(err, look)
		}
		for _, m := range []machine{m, all[0]} {
			if m.Ends.Before(begin.Add(55*time.Second)) || m.Ends.After(time.Now().Add(62*time.Second)) {
				t.Errorf("with a clock %s ahead, the box ends in %s", ahead, time.Until(m.Ends))
			}
		}
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	for give, want := range map[time.Duration]int64{0: 0, time.Millisecond: 1, time.Second: 1, 1001 * time.Millisecond: 2} {
		if got := seconds(give); got != want {
			t.Errorf("%s is %d s, want %d", give, got, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"": "public_url is missing", "ship.example.com": "no web address", "ftp://x": "no web address",
		"https://ship.example.com:8443": "ports 443 and 80",
	} {
		if _, err := brokerHost(url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", url, err)
		}
	}
	for url, want := range map[string]string{"https://ship.example.com/x": "ship.example.com", "https://203.0.113.7:8443": "203.0.113.7", "https://a.b:443": "a.b"} {
		if got, err := brokerHost(url); got != want || err != nil {
			t.Errorf("%q: %q, %v", url, got, err)
		}
	}
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "api_key") {
		t.Errorf("without a key: %v", err)
	}
	bad := Settings{User: "root", AllowHosts: []string{"https://x", "a b", ""}}
	if err := bad.Validate(); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("Validate: %v", err)
	}
	if err := (Settings{User: "user", AllowHosts: []string{"*.example.com", "10.0.0.0/8", "2001:db8::1"}}).Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
}
