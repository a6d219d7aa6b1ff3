package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
// a handler that only reads the body, in the same run: on a machine that does
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
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
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

// benchPayload has the shape and the size of what GitHub sends: many fields
// that nobody needs, and a long text in the issue.
func benchPayload(id int) []byte {
	type object = map[string]any
	user := object{"login": "mona", "id": 1, "type": "User"}
	for i := range 12 {
		user[fmt.Sprintf("some_url_%d", i)] = fmt.Sprintf("https://api.github.com/users/mona/some/%d", i)
	}
	repo := object{"id": 1001, "name": "widgets", "full_name": "acme/widgets", "owner": user, "default_branch": "main"}
	for i := range 45 {
		repo[fmt.Sprintf("things_url_%d", i)] = fmt.Sprintf("https://api.github.com/repos/acme/widgets/things/%d{/sha}", i)
	}
	payload := object{
		"action": "created", "sender": user, "repository": repo, "installation": object{"id": 99},
		"issue": object{
			"id": 5, "number": 7, "title": "Widgets are broken", "state": "open", "user": user,
			"body": strings.Repeat("They \"do not\" turn.\n", 600), "labels": []object{{"name": "bug", "color": "f00"}},
		},
		"comment": object{
			"id": 700000000000 + id, "body": "/ship fix the widgets", "user": user, "author_association": "MEMBER",
			"created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05Z",
		},
	}
	body, err := json.Marshal(payload)
	if err != nil {
		panic(err) // unreachable: plain values
	}
	if pad := 28<<10 - len(body); pad > 0 {
		payload["enterprise"] = object{"description": strings.Repeat("x", pad)}
		if body, err = json.Marshal(payload); err != nil {
			panic(err) // unreachable
		}
	}
	return body
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
