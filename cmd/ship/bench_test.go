package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ship/bot"
	"ship/integrations/github"
	"ship/integrations/github/githubtest"
	"ship/session/redis"
	"ship/session/redis/redistest"
)

// benchConnections is how many connections deliver at the same time.
const benchConnections = 32

// BenchmarkIntake measures the whole way in, from the socket to the disk, and
// a handler that only reads the body into memory, in the same run: on a machine that does
// other things too, only their ratio says something. The client writes bytes
// that were made beforehand, so that it costs as little as it can.
//
// The bare handler is measured before and after, and the ratio is of the mean.
func BenchmarkIntake(b *testing.B) {
	var bare, whole float64
	b.Run("bare", func(b *testing.B) { bare = serveBench(b, bareHandler()) })
	b.Run("ship", func(b *testing.B) { whole = serveBench(b, shipHandler(b)) })
	b.Run("bare-again", func(b *testing.B) { bare = (bare + serveBench(b, bareHandler())) / 2 })
	if bare > 0 {
		b.Logf("the whole intake reaches %.2f of a bare handler (%.0f/s of %.0f/s), appendfsync always, 28 KB, %d connections", whole/bare, whole, bare, benchConnections)
	}
}

func bareHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
}

func shipHandler(b *testing.B) http.Handler {
	b.Helper()
	server := redistest.Start(b)
	store, err := redis.Open(b.Context(), redis.Options{URL: server.URL()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	host, err := githubtest.New(githubtest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = host.Close() })
	hub, err := github.New(github.Config{AppID: 4242, PrivateKey: host.PrivateKey(), WebhookSecrets: []string{rigSecret}})
	if err != nil {
		b.Fatal(err)
	}
	return bot.NewServer(bot.Config{
		Inbox: store, Receivers: map[string]bot.Receiver{"github": hub}, Logger: slog.New(slog.DiscardHandler),
	}).Handler()
}

// serveBench delivers b.N webhooks to a handler and returns the rate.
func serveBench(b *testing.B, h http.Handler) float64 {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	requests := benchRequests(b.N)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range benchConnections {
		wg.Go(func() {
			if err := deliverAll(listener.Addr().String(), requests, &next); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "deliveries/s")
	return rate
}

// deliverAll takes requests over one connection until none is left.
func deliverAll(addr string, requests [][]byte, next *atomic.Int64) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		n := next.Add(1) - 1
		if n >= int64(len(requests)) {
			return nil
		}
		if _, err := conn.Write(requests[n]); err != nil {
			return err
		}
		if err := readAnswer(in); err != nil {
			return err
		}
	}
}

func readAnswer(in *bufio.Reader) error {
	r := textproto.NewReader(in)
	status, err := r.ReadLine()
	if err != nil {
		return err
	}
	header, err := r.ReadMIMEHeader()
	if err != nil {
		return err
	}
	length, _ := strconv.Atoi(header.Get("Content-Length"))
	if _, err := in.Discard(length); err != nil {
		return err
	}
	if !strings.Contains(status, " 200 ") {
		return errors.New(status)
	}
	return nil
}

// benchRequests are signed comments of 28 KB, each another one.
func benchRequests(n int) [][]byte {
	head := benchPayload(0)
	out := make([][]byte, n)
	for i := range out {
		body := bytes.Replace(head, []byte(`"id":700000000000`), fmt.Appendf(nil, `"id":%d`, 700000000000+i), 1)
		mac := hmac.New(sha256.New, []byte(rigSecret))
		mac.Write(body)
		out[i] = fmt.Appendf(nil, "POST /webhooks/github HTTP/1.1\r\nHost: ship\r\nContent-Type: application/json\r\nX-GitHub-Event: issue_comment\r\nX-GitHub-Delivery: %s\r\nX-Hub-Signature-256: sha256=%s\r\nContent-Length: %d\r\n\r\n%s",
			newGUID(), hex.EncodeToString(mac.Sum(nil)), len(body), body)
	}
	return out
}

// benchPayload has the shape, the order and the size of what GitHub sends when
// somebody comments: people and the repository with dozens of addresses each,
// and the whole text, which nobody needs here.
func benchPayload(id int) []byte {
	urls := func(base string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"some_thing_%d_url":"%s/things/%d{/other_thing}",`, i, base, i)
		}
		return b.String()
	}
	user := func(login string) string {
		base := "https://api.github.com/users/" + login
		return fmt.Sprintf(`{"login":%q,"id":1,"node_id":"MDQ6VXNlcjE=","avatar_url":"%s/avatar",%s"type":"User","site_admin":false}`, login, base, urls(base, 12))
	}
	repo := "https://api.github.com/repos/acme/widgets"
	text := strings.Repeat(`They do not turn when one pushes the handle, but they did so last week.\r\n`, 140)
	body := fmt.Sprintf(`{"action":"created","issue":{"url":"%[1]s/issues/7","repository_url":"%[1]s",%[2]s"id":5,"node_id":"I_5","number":7,"title":"Widgets are broken","user":%[3]s,"labels":[{"id":9,"name":"bug","color":"ff0000","default":true}],"state":"open","locked":false,"assignee":null,"assignees":[],"milestone":null,"comments":3,"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z","closed_at":null,"author_association":"MEMBER","active_lock_reason":null,"body":"%[4]s","performed_via_github_app":null},"comment":{"url":"%[1]s/issues/comments/1","html_url":"https://github.com/acme/widgets/issues/7#issuecomment-1","id":%[5]d,"node_id":"IC_1","user":%[3]s,"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z","author_association":"MEMBER","body":"/ship fix the widgets","performed_via_github_app":null},"repository":{"id":1001,"node_id":"R_1","name":"widgets","full_name":"acme/widgets","private":true,"owner":%[6]s,"html_url":"https://github.com/acme/widgets","description":null,"fork":false,%[7]s"default_branch":"main"},"organization":{"login":"acme","id":2},"sender":%[3]s,"installation":{"id":99,"node_id":"MDIz"}}`,
		repo, urls(repo+"/issues/7", 5), user("mona"), text, 700000000000+id, user("acme"), urls(repo, 45))
	if pad := 28<<10 - len(body); pad > 0 {
		body = strings.Replace(body, text, text+strings.Repeat("x", pad), 1)
	}
	return []byte(body)
}

// TestBenchPayloadIsAccepted keeps the benchmark honest: what it sends becomes
// an event.
func TestBenchPayloadIsAccepted(t *testing.T) {
	t.Parallel()
	hub, err := githubtest.New(githubtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	r, err := github.NewReceiver(4242, github.DefaultWebURL, []string{rigSecret})
	if err != nil {
		t.Fatal(err)
	}
	body := benchPayload(3)
	d := githubtest.Delivery{Body: body, Header: http.Header{
		"Content-Type": {"application/json"}, "X-Github-Event": {"issue_comment"}, "X-Github-Delivery": {newGUID()},
	}}.Sign(rigSecret)
	got, err := r.Receive(context.Background(), d.Header, body)
	if err != nil || len(got.Deliveries) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(body) < 28<<10 || len(body) > 30<<10 {
		t.Errorf("the payload has %d bytes", len(body))
	}
}
