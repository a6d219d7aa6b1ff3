package broker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	apiKey   = "sk-upstream-0123456789"
	chatPath = "/broker/model/acme/chat/completions"
)

func acme(url string) map[string]Provider {
	return map[string]Provider{"acme": {BaseURL: url, APIKey: apiKey, Models: map[string]Price{
		"small": {Input: 3, Output: 15, Cached: 0.3}, "vendor/large": {Input: 30, Output: 150}, "other": {},
	}}}
}

// upstream is a provider that answers with what the test says.
func upstream(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func ask(model string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hello"}]}`, model)
}

const used = `{"choices":[],"usage":{"prompt_tokens":1002,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":400}}}`

func TestCompletion(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, body = r, string(raw)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Server", "acme")
		w.Header().Set("X-Request-Id", "req_1")
		w.Header().Set("X-Ratelimit-Remaining-Tokens", "9")
		w.Header().Set("X-Ratelimit-Key", apiKey)
		fmt.Fprint(w, used)
	}))})
	req, err := http.NewRequestWithContext(t.Context(), "POST", b.url+chatPath+"?api-version=x", strings.NewReader(ask("small")))
	if err != nil {
		t.Fatal(err)
	}
	token := b.token(testGrant())
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "Cookie": {"c=d"}, "X-Anything": {"e"}, "Openai-Organization": {"f"}}
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text := text(t, resp); resp.StatusCode != 200 || text != used {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	resp.Header.Del("Date")
	resp.Header.Del("Content-Length")
	if diff := cmp.Diff(http.Header{
		"Content-Type": {"application/json"}, "X-Content-Type-Options": {"nosniff"},
		"X-Request-Id": {"req_1"}, "X-Ratelimit-Remaining-Tokens": {"9"},
	}, resp.Header); diff != "" {
		t.Errorf("headers to the client: %s", diff)
	}
	if got.URL.String() != "/v1/chat/completions" || body != `{"messages":[{"role":"user","content":"hello"}],"model":"small"}` {
		t.Errorf("upstream got %s %s", got.URL, body)
	}
	got.Header.Del("Content-Length")
	if diff := cmp.Diff(http.Header{
		"Authorization": {"Bearer " + apiKey}, "Content-Type": {"application/json"}, "User-Agent": {"ship"},
		"Accept": {"application/json, text/event-stream"},
	}, got.Header); diff != "" {
		t.Errorf("headers to the upstream: %s", diff)
	}
	balance, err := b.broker.Balance(t.Context(), testGrant())
	spent := balance.Turn
	if err != nil || spent.Calls != 1 || spent.Input != 1002 || spent.Output != 50 || !near(spent.USD, 0.002676) {
		t.Errorf("spent %+v, %v", spent, err)
	}
	call := <-b.seen.calls
	call.Took, call.Usage.USD = 0, 0
	if diff := cmp.Diff(Call{Provider: "acme", Model: "small", Status: 200, Usage: Usage{Calls: 1, Input: 1002, Output: 50}}, call); diff != "" {
		t.Error(diff)
	}
}

// The first piece reaches the client before the second one exists.
func TestStreamPassesPieceByPiece(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			StreamOptions map[string]bool `json:"stream_options"`
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil || !body.StreamOptions["include_usage"] {
			t.Error("usage was not asked for")
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{`{"choices":[{"delta":{"content":"a"}}]}`, used, "[DONE]"} {
			fmt.Fprintf(w, "data: %s\n\n", piece)
			w.(http.Flusher).Flush()
			select {
			case <-more:
			case <-r.Context().Done():
			}
		}
	}))})
	resp := b.do(testGrant(), "POST", chatPath, `{"model":"small","stream":true}`)
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{`data: {"choices":[{"delta":{"content":"a"}}]}`, "data: " + used, "data: [DONE]"} {
		if !lines.Scan() || lines.Text() != want || !lines.Scan() || lines.Text() != "" {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
		more <- struct{}{}
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("after the end: %q, %v", lines.Text(), lines.Err())
	}
	<-b.seen.calls
	if spent := b.ledger.of(testGrant()); !near(spent.USD, 0.002676) {
		t.Errorf("spent %+v", spent)
	}
}

func TestModelsThatMayBeCalled(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		fmt.Fprint(w, used)
	}))})
	want := `{"data":[{"id":"small","object":"model","created":0,"owned_by":"acme"},{"id":"vendor/large","object":"model","created":0,"owned_by":"acme"}],"object":"list"}`
	if got := text(t, b.do(testGrant(), "GET", "/broker/model/acme/models", "")); got != want {
		t.Errorf("list: %s", got)
	}
	for _, model := range []string{"other", "vanished", "SMALL", "acme/small", "small "} {
		say := wantCode(t, b.do(testGrant(), "POST", chatPath, ask(model)), 403, codeModel)
		if !strings.HasSuffix(say, "it may call: small, vendor/large") {
			t.Errorf("%s: %s", model, say)
		}
	}
	g := testGrant()
	g.Models = nil
	if say := wantCode(t, b.do(g, "POST", chatPath, ask("small")), 403, codeModel); !strings.HasSuffix(say, ": none") {
		t.Errorf("nothing granted: %s", say)
	}
	wantCode(t, b.do(testGrant(), "POST", chatPath, `{"model":"small","models":["other"]}`), 400, codeMalformed)
	wantCode(t, b.do(testGrant(), "POST", chatPath, "hello"), 400, codeMalformed)
	wantCode(t, b.do(testGrant(), "GET", chatPath, ""), 405, codeMethod)
	for _, path := range []string{"acme/embeddings", "acme/v1/chat/completions", "acme/chat/completions/", "acme", "", "acme2/models", "acme//models", "acme/%6dodels"} {
		if resp := b.do(testGrant(), "POST", "/broker/model/"+path, ask("small")); resp.StatusCode != 404 && resp.StatusCode != 400 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if spent := b.ledger.of(testGrant()); calls.Load() != 0 || spent != (Usage{}) {
		t.Errorf("refusals cost %d calls upstream and %+v", calls.Load(), spent)
	}
	if resp := b.do(testGrant(), "POST", chatPath, ask("vendor/large")); resp.StatusCode != 200 {
		t.Errorf("model with a slash: %d", resp.StatusCode)
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{MaxBody: 1000, Providers: acme("http://127.0.0.1:1")})
	body := func(n int) string {
		return `{"model":"unknown","x":"` + strings.Repeat("x", n-len(`{"model":"unknown","x":""}`)) + `"}`
	}
	wantCode(t, b.do(testGrant(), "POST", chatPath, body(1001)), 413, codeTooLarge)
	wantCode(t, b.do(testGrant(), "POST", chatPath, body(1000)), 403, codeModel)
}

func TestCallsAreLimited(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		fmt.Fprint(w, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))})
	g := testGrant()
	g.Calls = 5
	var wg sync.WaitGroup
	var refused atomic.Int64
	for range 40 {
		wg.Go(func() {
			if b.do(g, "POST", chatPath, ask("small")).StatusCode == 403 {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if calls.Load() != 5 || refused.Load() != 35 {
		t.Errorf("%d calls, %d refused", calls.Load(), refused.Load())
	}
	if got := b.ledger.of(g).Calls; got != 5 {
		t.Errorf("ledger counts %d", got)
	}
	wantCode(t, b.do(g, "POST", chatPath, ask("small")), 403, codeCalls)
}

// Two gateways that serve one turn share its calls.
func TestCallsAreLimitedAcrossProcesses(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	url := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		fmt.Fprint(w, used)
	})
	one := newBench(t, Config{Providers: acme(url)})
	two := newBench(t, Config{Providers: acme(url)})
	two.broker.till.ledger = one.ledger
	g := testGrant()
	g.Calls = 7
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() { []*bench{one, two}[i%2].do(g, "POST", chatPath, ask("small")) })
	}
	wg.Wait()
	if calls.Load() != 7 {
		t.Errorf("%d calls", calls.Load())
	}
}

// rival is a ledger with another process that calls whenever this one has
// looked.
type rival struct{ *memory }

func (l rival) Totals(ctx context.Context, accounts ...string) ([]Usage, error) {
	all, err := l.memory.Totals(ctx, accounts...)
	for _, account := range accounts {
		_, spendErr := l.Spend(ctx, account, Usage{Calls: 1})
		err = errors.Join(err, spendErr)
	}
	return all, err
}

func TestAnotherProcessTakesTheLastCall(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Providers: acme("http://127.0.0.1:1")})
	b.broker.till.ledger = rival{b.ledger}
	g := testGrant()
	g.Calls = 1
	wantCode(t, b.do(g, "POST", chatPath, ask("small")), 403, codeCalls)
}

func TestBudgetIsLimited(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, used)
	}))})
	g := testGrant()
	g.BudgetUSD = 2.5 * 0.002676
	for i := range 3 {
		if resp := b.do(g, "POST", chatPath, ask("small")); resp.StatusCode != 200 {
			t.Fatalf("call %d: %d", i, resp.StatusCode)
		}
		<-b.seen.calls
	}
	if say := wantCode(t, b.do(g, "POST", chatPath, ask("small")), 403, codeBudget); !strings.Contains(say, "0.01 USD") {
		t.Error(say)
	}
	if spent := b.ledger.of(g); spent.Calls != 3 || !near(spent.USD, 3*0.002676) {
		t.Errorf("spent %+v", spent)
	}
	g.Turn, g.BudgetUSD = "none", 0
	wantCode(t, b.do(g, "POST", chatPath, ask("small")), 403, codeBudget)
}

// Calls at the same time do not each take the last of the money: those that may
// not fit wait, and are refused only when it is really gone.
func TestConcurrentCallsShareTheBudget(t *testing.T) {
	t.Parallel()
	var under, most, calls atomic.Int64
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		now := under.Add(1)
		defer under.Add(-1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		fmt.Fprint(w, `{"usage":{"prompt_tokens":1000,"completion_tokens":1000}}`) // 0.018 USD
	}))})
	g := testGrant()
	g.Calls, g.BudgetUSD = 100, 0.05
	body := `{"model":"small","max_tokens":4000}` // may cost 0.06 USD
	var wg sync.WaitGroup
	var served, refused atomic.Int64
	for range 12 {
		wg.Go(func() {
			switch resp := b.do(g, "POST", chatPath, body); resp.StatusCode {
			case 200:
				served.Add(1)
			case 403:
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if calls.Load() != 3 || served.Load() != 3 || refused.Load() != 9 || most.Load() != 1 {
		t.Errorf("%d calls, %d served, %d refused, %d at a time", calls.Load(), served.Load(), refused.Load(), most.Load())
	}
	if spent := b.ledger.of(g); !near(spent.USD, 3*0.018) {
		t.Errorf("spent %+v", spent)
	}
}

// While there is money for all, calls run beside each other.
func TestCallsRunConcurrently(t *testing.T) {
	t.Parallel()
	var waiting sync.WaitGroup
	waiting.Add(maxCalls)
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		waiting.Done()
		waiting.Wait() // for ever, unless all are here
		fmt.Fprint(w, used)
	}))})
	g := testGrant()
	g.BudgetUSD = 100
	var wg sync.WaitGroup
	for range maxCalls {
		wg.Go(func() { b.do(g, "POST", chatPath, ask("small")) })
	}
	wg.Wait()
	if got := b.ledger.of(g).Calls; got != maxCalls {
		t.Errorf("%d calls", got)
	}
}

func TestUpstreamErrorsPass(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 404, 429, 500, 503} {
		b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"not with %s"}}`, r.Header.Get("Authorization"))
		}))})
		resp := b.do(testGrant(), "POST", chatPath, ask("small"))
		got := text(t, resp)
		if resp.StatusCode != status || resp.Header.Get("Retry-After") != "7" || got != `{"error":{"message":"not with Bearer [redacted]"}}` {
			t.Errorf("%d: %d %v %s", status, resp.StatusCode, resp.Header, got)
		}
		<-b.seen.calls
		if spent := b.ledger.of(testGrant()); spent != (Usage{Calls: 1}) {
			t.Errorf("%d: spent %+v", status, spent)
		}
	}
}

// An upstream that sends the key back in a stream, cut in two.
func TestKeyNeverReachesTheClient(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{"data: {\"k\":\"" + apiKey[:9], apiKey[9:] + "\"}\n\n", "data: " + apiKey + "\n\n"} {
			fmt.Fprint(w, piece)
			w.(http.Flusher).Flush()
		}
	}))})
	got := text(t, b.do(testGrant(), "POST", chatPath, ask("small")))
	if got != "data: {\"k\":\"[redacted]\"}\n\ndata: [redacted]\n\n" {
		t.Errorf("got %q", got)
	}
	if strings.Contains(b.log.String(), apiKey) {
		t.Error("the key is in the log")
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var strayed atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Store(true) }))
	defer elsewhere.Close()
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))})
	wantCode(t, b.do(testGrant(), "POST", chatPath, ask("small")), 502, codeRefused)
	if strayed.Load() {
		t.Error("followed")
	}
}

func TestUnreachableUpstream(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	b := newBench(t, Config{Providers: acme("http://" + l.Addr().String())})
	say := wantCode(t, b.do(testGrant(), "POST", chatPath, ask("small")), 502, codeUnreachable)
	if strings.Contains(say, l.Addr().String()) {
		t.Errorf("tells the address: %s", say)
	}
	if spent := b.ledger.of(testGrant()); spent != (Usage{Calls: 1}) {
		t.Errorf("spent %+v", spent)
	}
}

func TestHangingUpstream(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	b := newBench(t, Config{HeaderTimeout: 50 * time.Millisecond, Providers: acme(upstream(t, hang))})
	wantCode(t, b.do(testGrant(), "POST", chatPath, ask("small")), 504, codeTimeout)
	call := <-b.seen.calls
	if !call.Estimated || call.Usage.Input == 0 || call.Status != 0 {
		t.Errorf("call %+v", call)
	}
}

// A stream that falls silent is cut, not ended: the client must not take half
// an answer for a whole one.
func TestSilentStreamIsCut(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	b := newBench(t, Config{IdleTimeout: slack(t), Providers: acme(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}))})
	resp := b.do(testGrant(), "POST", chatPath, ask("small"))
	got, err := io.ReadAll(resp.Body)
	if err == nil || !strings.Contains(string(got), "half") {
		t.Errorf("read %q, %v", got, err)
	}
	<-gone
	if call := <-b.seen.calls; !call.Estimated || call.Usage.Output == 0 {
		t.Errorf("call %+v", call)
	}
	if log := b.log.String(); !strings.Contains(log, codeTimeout) {
		t.Errorf("log: %s", log)
	}
}

func TestClientLeaves(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}))})
	resp := b.do(testGrant(), "POST", chatPath, ask("small"))
	if _, err := resp.Body.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-gone
	<-b.seen.calls
	for b.ledger.of(testGrant()).Output == 0 { // booked right after the observer was told
		if t.Context().Err() != nil {
			t.Fatal("what was used is not booked")
		}
		time.Sleep(time.Millisecond)
	}
}

// End cuts what is under way.
func TestEndCutsCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))})
	resp := b.do(testGrant(), "POST", chatPath, ask("small"))
	if err := b.broker.End(t.Context(), "gh.1.2", "3"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the answer was ended, not cut")
	}
	wantCode(t, b.do(testGrant(), "POST", chatPath, ask("small")), 403, codeEnded)
}

// A grant's expiry ends what is under way too.
func TestExpiryCutsCalls(t *testing.T) {
	t.Parallel()
	soon := slack(t)
	b := newBench(t, Config{Providers: acme(upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))})
	g := testGrant()
	g.Expires = time.Now().Add(soon)
	wantCode(t, b.do(g, "POST", chatPath, ask("small")), 403, codeExpired)
}

// The ledger fails for a moment when the answer is there already.
func TestBookingIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, used) }))})
	b.ledger.fail = settleTries - 1
	text(t, b.do(testGrant(), "POST", chatPath, ask("small")))
	<-b.seen.calls
	if resp := b.do(testGrant(), "POST", chatPath, ask("small")); resp.StatusCode != 200 {
		t.Fatal(resp.StatusCode)
	}
	if spent := b.ledger.of(testGrant()); spent.USD < 0.002676 {
		t.Errorf("spent %+v", spent)
	}
}

// A ledger that stays away spoils no answer.
func TestAnswerThatCannotBeBooked(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, used) }))})
	b.ledger.fail = settleTries
	if got := text(t, b.do(testGrant(), "POST", chatPath, ask("small"))); got != used {
		t.Errorf("answer %q", got)
	}
	if log := b.log.String(); !strings.Contains(log, "a model call was not booked") || !strings.Contains(log, "usd=0.002676") {
		t.Errorf("log: %s", log)
	}
}

// A call that waits for another's money does not wait beyond the turn.
func TestEndOfACallThatWaits(t *testing.T) {
	t.Parallel()
	first := make(chan struct{}, 2)
	b := newBench(t, Config{Providers: acme(upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		first <- struct{}{}
		<-r.Context().Done()
	}))})
	g := testGrant()
	g.BudgetUSD = 0.01
	done := make(chan *http.Response, 2)
	go func() { done <- b.do(g, "POST", chatPath, ask("small")) }()
	<-first
	go func() { done <- b.do(g, "POST", chatPath, ask("small")) }()
	reads := b.ledger.reads.Load()
	for b.ledger.reads.Load() < reads+2 { // it has looked whether the turn has ended, and at its money
		runtime.Gosched()
	}
	if err := b.broker.End(t.Context(), g.Session, g.Turn); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wantCode(t, <-done, 403, codeEnded)
	}
	if len(first) != 0 {
		t.Error("the second call was made")
	}
}

// As a local box reaches it.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, used) }))})
	l, err := net.Listen("unix", t.TempDir()+"/b")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: b.broker}
	go srv.Serve(l)
	defer srv.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
	}}
	defer transport.CloseIdleConnections()
	b.client, b.url = &http.Client{Transport: transport}, "http://box"
	for range 2 { // the second on the same connection
		if got := text(t, b.do(testGrant(), "POST", chatPath, ask("small"))); got != used {
			t.Errorf("got %s", got)
		}
	}
}
