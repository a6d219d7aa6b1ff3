package broker

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// hurried serves a bench's broker again, by a server that allows a request and
// its answer little time: what a front door does to protect itself.
func hurried(b *bench, little time.Duration) {
	srv := httptest.NewUnstartedServer(b.broker)
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = little, little
	srv.Start()
	b.Cleanup(srv.Close)
	b.url = srv.URL
}

func TestStreamOutlivesTheServersLimit(t *testing.T) {
	t.Parallel()
	little := slack(t)
	b := newBench(t, Config{Providers: acme(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			fmt.Fprint(w, "data: {}\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(little / 2):
			case <-r.Context().Done():
			}
		}
	}))})
	hurried(b, little)
	if got := text(t, b.do(testGrant(), "POST", chatPath, ask("small"))); strings.Count(got, "data:") != 3 {
		t.Errorf("got %q", got)
	}
}

func TestPushOutlivesTheServersLimit(t *testing.T) {
	t.Parallel()
	b := stub(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d bytes, %v", len(body), err)
	})
	little := slack(t)
	hurried(b, little)
	head := pkt(zeros+" "+ones+" refs/heads/ship/fix\x00 report-status") + "0000"
	pr, pw := io.Pipe()
	go func() {
		io.WriteString(pw, head)
		for range 3 {
			time.Sleep(little / 2) // the time that passes is the test
			io.WriteString(pw, "PACK")
		}
		pw.Close()
	}()
	req, err := http.NewRequestWithContext(t.Context(), "POST", b.url+"/broker/git/octo/widgets.git/git-receive-pack", pr)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.token(testGrant()))
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, want := text(t, resp), fmt.Sprintf("%d bytes, <nil>", len(head)+12); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// connect sends the beginning of a request by hand.
func connect(b *bench, path, head string) net.Conn {
	b.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		b.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: box\r\nAuthorization: Bearer %s\r\n%s", path, b.token(testGrant()), head)
	return conn
}

// A code host that says no in the middle of a push is heard at once, also when
// the client waits with the rest.
func TestEarlyNoIsHeard(t *testing.T) {
	t.Parallel()
	b := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusForbidden)
	})
	b.broker.idle = time.Hour
	conn := connect(b, "/broker/git/octo/widgets.git/git-receive-pack",
		"Content-Length: 1000000\r\n\r\n"+pkt(zeros+" "+ones+" refs/heads/ship/fix\x00 report-status")+"0000PACK")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestSilentRequestIsCut(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{IdleTimeout: 50 * time.Millisecond, Providers: acme("http://127.0.0.1:1")})
	conn := connect(b, chatPath, "Content-Length: 100\r\n\r\n{\"model\":")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	wantCode(t, resp, http.StatusGatewayTimeout, codeTimeout)
}

// A client that asks and never listens holds no connection to the provider.
func TestClientThatDoesNotReadIsCut(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	b := newBench(t, Config{IdleTimeout: slack(t), Providers: acme(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		w.Header().Set("Content-Type", "text/event-stream")
		line := []byte("data: " + strings.Repeat("x", 64<<10) + "\n\n")
		for r.Context().Err() == nil {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	}))})
	body := ask("small")
	connect(b, chatPath, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
	<-gone
	if call := <-b.seen.calls; !call.Estimated {
		t.Errorf("call %+v", call)
	}
}

// The way to most real upstreams.
func TestUpstreamOverHTTP2(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.ProtoMajor != 2 || err != nil {
			t.Errorf("%s, %v", r.Proto, err)
		}
		if user, pass, ok := r.BasicAuth(); ok {
			fmt.Fprintf(w, "%s %s %d", user, pass, len(body))
			return
		}
		fmt.Fprint(w, used)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	b := newBench(t, Config{Providers: acme(srv.URL), GitURL: srv.URL, Credentials: fixed{user: "u", password: "p"}})
	b.broker.transport.(*http.Transport).TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	if got := text(t, b.do(testGrant(), "POST", chatPath, ask("small"))); got != used {
		t.Errorf("model: %s", got)
	}
	push := pkt(zeros+" "+ones+" refs/heads/ship/fix\x00 report-status") + "0000PACK"
	if got := text(t, b.do(testGrant(), "POST", "/broker/git/octo/widgets.git/git-receive-pack", push)); got != fmt.Sprintf("u p %d", len(push)) {
		t.Errorf("push: %s", got)
	}
}
