package broker

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// page asks for an address in the clear.
func (b *egressBench) page(method, address string, header ...string) *http.Response {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, b.url+FetchPath, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Header.Set("Authorization", "Bearer "+b.token(testGrant()))
	req.Header.Set(TargetHeader, address)
	resp, err := b.client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestFetch(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "http://127.0.0.1/", http.StatusFound)
			return
		}
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Etag", `"1"`)
		fmt.Fprint(w, r.Method, " ", r.Host, " ", r.URL, " ", r.Header)
	})
	resp := b.page("GET", "http://WWW.Example.com/a%2Fb?token=hunter2#x", "Range", "bytes=0-", "Cookie", "c=d", "Ship-Other", "x", "User-Agent", "apt")
	want := "GET www.example.com /a%2Fb?token=hunter2 map[Connection:[close] Range:[bytes=0-] User-Agent:[apt]]"
	if got := text(t, resp); got != want || resp.Header.Get("Etag") == "" || resp.Header.Get("Set-Cookie") != "" {
		t.Errorf("got %q\n%v", got, resp.Header)
	}
	if p := b.next(); p.Outcome != "ok" || p.Rule != "*.example.com" || p.In < int64(len(want)) {
		t.Errorf("told of %+v", p)
	}
	if resp := b.page("GET", "http://example.com/moved"); resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "http://127.0.0.1/" {
		t.Errorf("a redirect: %d %v", resp.StatusCode, resp.Header)
	}
	if resp := b.page("HEAD", "http://example.com/"); resp.StatusCode != http.StatusOK || resp.ContentLength <= 0 {
		t.Errorf("HEAD: %d, length %d", resp.StatusCode, resp.ContentLength)
	}
	if log := b.log.String(); strings.Contains(log, "hunter2") || strings.Contains(log, "%2F") {
		t.Errorf("the log tells the path: %s", log)
	}
}

func TestFetchRefused(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{}, hello)
	for address, want := range map[string]int{
		"http://evil.com/": 403, "http://example.com:8080/": 403, "http://127.0.0.1/": 403, "http://[::1]/": 403,
		"https://example.com/": 400, "ftp://example.com/": 400, "example.com:80": 400, "http://u:p@example.com/": 400, "http:example.com": 400,
		"//example.com/": 400, "http:///": 400, "": 400, "http://example.com@evil.com/": 400, "http://2130706433/": 400,
	} {
		if resp := b.page("GET", address); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", address, resp.StatusCode, want)
		}
	}
	if resp := b.page("POST", "http://example.com/"); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

// TestFetchTooMuch: an answer that breaks off is not taken for a whole one.
func TestFetchTooMuch(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{MaxBytes: 1 << 20}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(zero{}, 2<<20))
	})
	resp := b.page("GET", "http://example.com/")
	if n, err := io.Copy(io.Discard, resp.Body); err == nil || n > 1<<20+64<<10 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if p := b.next(); p.Outcome != codeTraffic {
		t.Errorf("told of %+v", p)
	}
}
