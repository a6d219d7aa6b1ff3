package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ship/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if err := sandboxtest.Overlap(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait for what only a fault keeps from coming.
const patience = 3 * time.Minute

// memory is a ledger that lasts as long as the test.
type memory struct {
	mu       sync.Mutex
	accounts map[string]Usage
	// fail makes that many of the coming bookings of money fail; down all of
	// everything.
	fail int
	down bool
	// reads counts the looks at an account.
	reads atomic.Int64
}

func newMemory() *memory { return &memory{accounts: map[string]Usage{}} }

func (l *memory) Spend(ctx context.Context, account string, u Usage) (Usage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Usage{}, err
	}
	if l.down {
		return Usage{}, errors.New("connection refused")
	}
	if u.USD > 0 && l.fail > 0 {
		l.fail--
		return Usage{}, errors.New("connection reset")
	}
	if u == (Usage{}) {
		l.reads.Add(1)
	}
	t := l.accounts[account]
	t.Calls, t.Input, t.Output, t.USD = t.Calls+u.Calls, t.Input+u.Input, t.Output+u.Output, t.USD+u.USD
	l.accounts[account] = t
	return t, nil
}

func (l *memory) Totals(ctx context.Context, accounts ...string) ([]Usage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.down {
		return nil, errors.New("connection refused")
	}
	l.reads.Add(1)
	var all []Usage
	for _, account := range accounts {
		all = append(all, l.accounts[account])
	}
	return all, nil
}

func (l *memory) of(g Grant) Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accounts[g.account()]
}

// seen is an observer that remembers.
type seen struct {
	calls  chan Call
	pushes chan int
	mu     sync.Mutex
	codes  []string
}

func newSeen() *seen { return &seen{calls: make(chan Call, 1000), pushes: make(chan int, 100)} }

func (s *seen) Called(c Call)               { s.calls <- c }
func (s *seen) Pushed(_ string, status int) { s.pushes <- status }
func (s *seen) Refused(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes = append(s.codes, code)
}

// journal is a log that can be searched.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// bench is a broker that listens, with everything around it.
type bench struct {
	*testing.T
	broker *Broker
	signer *Signer
	ledger *memory
	seen   *seen
	log    *journal
	url    string
	client *http.Client
}

func newBench(t *testing.T, c Config) *bench {
	t.Helper()
	signer, err := NewSigner(bytes.Repeat([]byte{7}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, signer: signer, ledger: newMemory(), seen: newSeen(), log: &journal{}}
	transport := newTransport(orDefault(c.HeaderTimeout, DefaultHeaderTimeout))
	t.Cleanup(transport.CloseIdleConnections)
	c.Signer, c.Ledger, c.Observer, c.Transport = signer, b.ledger, b.seen, transport
	c.Log = slog.New(slog.NewTextHandler(b.log, nil))
	if b.broker, err = New(c); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(b.broker)
	t.Cleanup(srv.Close)
	b.url, b.client = srv.URL, srv.Client()
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b
}

func (b *bench) token(g Grant) string {
	b.Helper()
	token, err := b.signer.Sign(g)
	if err != nil {
		b.Error(err)
	}
	return token
}

// do sends a request with a grant's token.
func (b *bench) do(g Grant, method, path, body string) *http.Response {
	b.Helper()
	return b.raw(b.token(g), method, path, body)
}

func (b *bench) raw(token, method, path, body string) *http.Response {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, b.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		b.Error(err)
		return &http.Response{Body: http.NoBody}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := b.client.Do(req)
	if err != nil {
		b.Error(err) // not Fatal: some tests ask from many goroutines
		return &http.Response{Body: http.NoBody}
	}
	b.Cleanup(func() { resp.Body.Close() })
	return resp
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	return string(all)
}

// wantCode checks a refusal in the form of the OpenAI API, and returns its
// message.
func wantCode(t *testing.T, resp *http.Response, status int, code string) string {
	t.Helper()
	var body struct {
		Error struct{ Message, Type, Code string }
	}
	raw := text(t, resp)
	if err := json.Unmarshal([]byte(raw), &body); err != nil {
		t.Fatalf("status %d, body %q: %v", resp.StatusCode, raw, err)
	}
	if resp.StatusCode != status || body.Error.Code != code {
		t.Fatalf("got %d %q, want %d %q: %s", resp.StatusCode, body.Error.Code, status, code, body.Error.Message)
	}
	return body.Error.Message
}

func testGrant() Grant {
	return Grant{
		Session: "gh.1.2", Turn: "3", Repo: "Octo/Widgets", RepoKey: "42", Push: "refs/heads/ship/fix",
		Models: []string{"acme/small", "acme/vendor/large", "acme/vanished"}, Calls: 10, BudgetUSD: 1,
		Expires: time.Now().Add(time.Hour),
	}
}

func TestTokensAtTheDoor(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Providers: acme("http://127.0.0.1:1")})
	expired := testGrant()
	expired.Expires = time.Now().Add(-time.Second)
	other, err := NewSigner(bytes.Repeat([]byte{8}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := other.Sign(testGrant())
	if err != nil {
		t.Fatal(err)
	}
	const path = "/broker/model/acme/models"
	wantCode(t, b.raw("", "GET", path, ""), 401, codeToken)
	wantCode(t, b.raw("sk-something", "GET", path, ""), 401, codeToken)
	wantCode(t, b.raw(forged, "GET", path, ""), 401, codeToken)
	wantCode(t, b.do(expired, "GET", path, ""), 403, codeExpired)
	wantCode(t, b.do(testGrant(), "GET", "/broker/", ""), 404, codeNotFound)
	wantCode(t, b.do(testGrant(), "GET", "/broker/else/x", ""), 404, codeNotFound)
}

func TestEndOfATurn(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Providers: acme("http://127.0.0.1:1")})
	for range 2 {
		if err := b.broker.End(t.Context(), "gh.1.2", "3"); err != nil {
			t.Fatal(err)
		}
	}
	again, err := New(Config{Signer: b.signer, Ledger: b.ledger, Providers: acme("http://127.0.0.1:1")})
	if err != nil {
		t.Fatal(err)
	}
	for name, broker := range map[string]*Broker{"the same process": b.broker, "another process": again} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/broker/model/acme/models", nil)
		r.Header.Set("Authorization", "Bearer "+b.token(testGrant()))
		broker.ServeHTTP(w, r)
		wantCode(t, w.Result(), 403, codeEnded)
		if t.Failed() {
			t.Log(name)
		}
	}
	next := testGrant()
	next.Turn = "4"
	if resp := b.do(next, "GET", "/broker/model/acme/models", ""); resp.StatusCode != 200 {
		t.Errorf("the next turn got %d", resp.StatusCode)
	}
	if u := b.ledger.of(testGrant()); u != (Usage{}) {
		t.Errorf("ending a turn shows as spending: %+v", u)
	}
}

func TestLedgerDown(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Providers: acme("http://127.0.0.1:1")})
	b.ledger.down = true
	resp := b.do(testGrant(), "GET", "/broker/model/acme/models", "")
	if resp.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	wantCode(t, resp, 503, codeLedger)
	if err := b.broker.End(t.Context(), "s", "1"); !errors.Is(err, errLedger) {
		t.Errorf("End: %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	signer, err := NewSigner(make([]byte, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	good := func() Config { return Config{Signer: signer, Ledger: newMemory()} }
	for name, spoil := range map[string]func(*Config){
		"no signer":            func(c *Config) { c.Signer = nil },
		"no ledger":            func(c *Config) { c.Ledger = nil },
		"provider's scheme":    func(c *Config) { c.Providers = acme("ftp://x") },
		"provider's password":  func(c *Config) { c.Providers = acme("https://u:p@x") },
		"provider's name":      func(c *Config) { c.Providers = map[string]Provider{"a/b": {BaseURL: "https://x"}} },
		"key with a line end":  func(c *Config) { c.Providers = map[string]Provider{"a": {BaseURL: "https://x", APIKey: "k\n"}} },
		"negative price":       func(c *Config) { c.Providers = priced(Price{Input: -1}) },
		"git without access":   func(c *Config) { c.GitURL = "https://github.com" },
		"access without git":   func(c *Config) { c.Credentials = fixed{} },
		"git in the clear":     func(c *Config) { c.GitURL, c.Credentials = "http://github.com", fixed{} },
		"git with a query":     func(c *Config) { c.GitURL, c.Credentials = "https://github.com?x", fixed{} },
		"git with credentials": func(c *Config) { c.GitURL, c.Credentials = "https://u:p@github.com", fixed{} },
	} {
		c := good()
		spoil(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	c := good()
	c.GitURL, c.Credentials, c.Providers = "https://github.com", fixed{}, acme("http://10.0.0.1:8000/v1")
	if _, err := New(c); err != nil {
		t.Errorf("good configuration: %v", err)
	}
}

func priced(p Price) map[string]Provider {
	return map[string]Provider{"a": {BaseURL: "https://x", Models: map[string]Price{"m": p}}}
}

// fixed are credentials that never change.
type fixed struct {
	user, password string
	err            error
}

func (f fixed) GitCredential(context.Context, string) (string, string, error) {
	return f.user, f.password, f.err
}
