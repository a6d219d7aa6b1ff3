package preview_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ship/sandbox"
	"ship/sandbox/preview"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = []byte("0123456789abcdef0123456789abcdef")

const base = "http://preview.example.net"

func links(t testing.TB) *preview.Links {
	t.Helper()
	l, err := preview.NewLinks(base, key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func link(t testing.TB, target preview.Target, until time.Time) string {
	t.Helper()
	u, err := links(t).URL(target, time.Now(), until)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func tokenOf(u string) string {
	return strings.TrimSuffix(strings.TrimPrefix(u, base+"/preview/"), "/")
}

var target = preview.Target{Session: "gh.1.7", Box: "box-1", Port: 3000}

func TestLinks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	u := link(t, target, now.Add(time.Hour))
	got, err := links(t).Verify(tokenOf(u), now)
	got.Expires = 0
	if err != nil || got != target {
		t.Errorf("%+v, %v", got, err)
	}
	if again := link(t, target, now.Add(time.Hour)); again != u {
		t.Errorf("%s, then %s", u, again)
	}
	if _, err := links(t).Verify(tokenOf(u), now.Add(time.Hour)); !errors.Is(err, preview.ErrExpired) {
		t.Errorf("at its end: %v", err)
	}
	long := link(t, target, now.Add(1000*time.Hour))
	if _, err := links(t).Verify(tokenOf(long), now.Add(25*time.Hour)); !errors.Is(err, preview.ErrExpired) {
		t.Errorf("after a day: %v", err)
	}
	other, err := preview.NewLinks(base, []byte("another key of thirty-two bytes."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Verify(tokenOf(u), now); !errors.Is(err, preview.ErrLink) {
		t.Errorf("by another key: %v", err)
	}
}

func TestPortsOfOurs(t *testing.T) {
	t.Parallel()
	for _, port := range []int{-1, 0, 22, 1023, 4010, 4011, 4096, 49983, 65536} {
		if _, err := links(t).URL(preview.Target{Box: "b", Port: port}, time.Now(), time.Now().Add(time.Hour)); err == nil {
			t.Errorf("port %d is shown", port)
		}
	}
}

func FuzzVerify(f *testing.F) {
	good := tokenOf(link(f, target, time.Now().Add(time.Hour)))
	for _, seed := range []string{"", ".", "a.b", good, good + "x", good[1:], strings.Replace(good, ".", "..", 1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := links(t).Verify(token, time.Now()); (err == nil) != (token == good) {
			t.Errorf("%q: %v", token, err)
		}
	})
}

// machine is a box in which one server listens, whatever the port.
type machine struct {
	sandbox.Box
	address string
}

func (m machine) Dial(ctx context.Context, _ int) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", m.address)
}

// boxes find the machine, or nothing.
type boxes struct {
	machine
	err error
}

func (b boxes) Peek(context.Context, string) (sandbox.Box, error) { return b.machine, b.err }

// stage is a server in a box, and the previews' host in front of it.
func stage(t *testing.T, h http.Handler, gone error) *httptest.Server {
	t.Helper()
	inner := httptest.NewServer(h)
	t.Cleanup(inner.Close)
	proxy := preview.NewProxy(links(t), boxes{machine{address: inner.Listener.Addr().String()}, gone})
	t.Cleanup(proxy.Close)
	outer := httptest.NewServer(proxy)
	t.Cleanup(outer.Close)
	return outer
}

func ask(t *testing.T, outer *httptest.Server, path string, header map[string]string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, outer.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	response, err := outer.Client().Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func TestWhatGoesInAndOut(t *testing.T) {
	t.Parallel()
	outer := stage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Service-Worker-Allowed", "/")
		h.Set("Clear-Site-Data", `"*"`)
		h.Set("Cache-Control", "public, max-age=9")
		h.Set("Referrer-Policy", "unsafe-url")
		h.Add("Set-Cookie", "a=b; Path=/x; Domain=example.net")
		h.Add("Set-Cookie", "__ship_x=1; Path=/")
		fmt.Fprintf(w, "%s %s host=%s auth=%q cookie=%q referer=%q for=%q prefix=%t",
			r.Method, r.URL.RequestURI(), r.Host, r.Header.Get("Authorization"), r.Header.Get("Cookie"),
			r.Referer(), r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Prefix") != "")
	}), nil)
	path := strings.TrimPrefix(link(t, target, time.Now().Add(time.Hour)), base)
	got, text := ask(t, outer, path+"a%2Fb?q=1", map[string]string{
		"Authorization": "Bearer x", "Cookie": "ship_linear=1; __ship_y=2; theme=dark", "Referer": outer.URL + path,
	})
	if want := `GET /a%2Fb?q=1 host=localhost:3000 auth="" cookie="theme=dark" referer="" for="" prefix=true`; text != want {
		t.Errorf("the server sees\n%s\nwant\n%s", text, want)
	}
	for name, want := range map[string]string{
		"X-Robots-Tag": "noindex, nofollow", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
		"Service-Worker-Allowed": "", "Clear-Site-Data": "", "Set-Cookie": "a=b; Path=" + path + "x",
	} {
		if all := strings.Join(got.Header.Values(name), " | "); all != want {
			t.Errorf("%s: %q, want %q", name, all, want)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	outer := stage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	}), nil)
	path := strings.TrimPrefix(link(t, target, time.Now().Add(time.Hour)), base)
	for to, want := range map[string]string{
		"/login%3Fx%3D1":               path + "login?x=1",
		"http://localhost:3000/a":      path + "a",
		"http://127.0.0.1:3000":        path,
		"http://localhost:3001/a":      "http://localhost:3001/a",
		"https://elsewhere.example/a":  "https://elsewhere.example/a",
		"next":                         "next",
		path + "built-with-the-prefix": path + "built-with-the-prefix",
	} {
		if got, _ := ask(t, outer, path+"?to="+to, nil); got.Header.Get("Location") != want {
			t.Errorf("%s leads to %s, want %s", to, got.Header.Get("Location"), want)
		}
	}
}

func TestPathsFromTheRoot(t *testing.T) {
	t.Parallel()
	outer := stage(t, http.NotFoundHandler(), nil)
	path := strings.TrimPrefix(link(t, target, time.Now().Add(time.Hour)), base)
	got, _ := ask(t, outer, "/assets/app.js?v=1", map[string]string{"Referer": outer.URL + path + "page?x"})
	if got.StatusCode != http.StatusTemporaryRedirect || got.Header.Get("Location") != path+"assets/app.js?v=1" {
		t.Errorf("%d, %s", got.StatusCode, got.Header.Get("Location"))
	}
	for name, referer := range map[string]string{
		"nobody": "", "elsewhere": "http://elsewhere.example" + path, "a link that is none": outer.URL + "/preview/x.y/",
	} {
		if got, _ := ask(t, outer, "/assets/app.js", map[string]string{"Referer": referer}); got.StatusCode != http.StatusNotFound {
			t.Errorf("from %s: %d", name, got.StatusCode)
		}
	}
}

func TestWhatIsNotShown(t *testing.T) {
	t.Parallel()
	good := strings.TrimPrefix(link(t, target, time.Now().Add(time.Hour)), base)
	old := strings.TrimPrefix(link(t, target, time.Now().Add(-time.Second)), base)
	for name, c := range map[string]struct {
		gone   error
		path   string
		header map[string]string
		want   int
	}{
		"no link":        {nil, "/", nil, 404},
		"a forged link":  {nil, "/preview/x.y/", nil, 404},
		"an old link":    {nil, old, nil, 410},
		"a box gone":     {sandbox.ErrGone, good, nil, 410},
		"a paused box":   {sandbox.ErrBusy, good, nil, 410},
		"a fault":        {sandbox.ErrTransient, good, nil, 502},
		"without slash":  {nil, strings.TrimSuffix(good, "/"), nil, 307},
		"service worker": {nil, good + "sw.js", map[string]string{"Service-Worker": "script"}, 403},
	} {
		outer := stage(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), c.gone)
		got, _ := ask(t, outer, c.path, c.header)
		if got.StatusCode != c.want || got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d (%s), want %d", name, got.StatusCode, got.Header.Get("Cache-Control"), c.want)
		}
	}
}

// TestUpgrade: what becomes a WebSocket is carried both ways, and ends with the
// link.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	outer := stage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Origin: %s\r\n\r\n", r.Header.Get("Origin"))
		_, _ = io.Copy(conn, both)
	}), nil)
	path := strings.TrimPrefix(link(t, target, time.Now().Add(3*time.Second)), base)
	conn, err := net.Dial("tcp", outer.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	host := outer.Listener.Addr().String()
	fmt.Fprintf(conn, "GET %sws HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", path, host, host)
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	if err != nil || response.StatusCode != 101 || response.Header.Get("X-Origin") != "http://localhost:3000" {
		t.Fatalf("%+v, %v", response, err)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(3 * time.Minute))
	if _, err := in.ReadByte(); err == nil || errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, io.EOF) {
		t.Errorf("after the link's end: %v", err)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{200: true, 302: true, 404: true, 500: false, 503: false} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if got := preview.Answers(t.Context(), machine{address: s.Listener.Addr().String()}, 3000); got != want {
			t.Errorf("%d: %t", status, got)
		}
		s.Close()
		if preview.Answers(t.Context(), machine{address: s.Listener.Addr().String()}, 3000) {
			t.Error("a server that is gone answers")
		}
	}
}
