package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ship/session/redis"
)

// burst is a number of deliveries that are made at the same time, some twice.
type burst struct {
	// requests as they go over the wire, in the order in which they are sent, and
	// ids the platform's ids of them, each once.
	requests [][]byte
	ids      map[string]bool
}

// burstSessions is among how many sessions a burst is spread, and twinEvery which
// delivery is made a second time, as platforms do that gave up waiting.
const (
	burstSessions = 500
	twinEvery     = 10
)

// newBurst makes n deliveries that differ, and a tenth more that do not. They
// tell of the comments from first on.
func newBurst(first, n int) burst {
	head := benchPayload(0)
	b := burst{ids: map[string]bool{}}
	for i := range n {
		body := bytes.Replace(head, []byte(`"id":700000000000`), fmt.Appendf(nil, `"id":%d`, 700000000000+first+i), 1)
		body = bytes.Replace(body, []byte(`"number":7`), fmt.Appendf(nil, `"number":%d`, 1+i%burstSessions), 1)
		mac := hmac.New(sha256.New, []byte(rigSecret))
		mac.Write(body)
		id := newGUID()
		b.ids[id] = true
		request := fmt.Appendf(nil, "POST /webhooks/github HTTP/1.1\r\nHost: ship\r\nContent-Type: application/json\r\nX-GitHub-Event: issue_comment\r\nX-GitHub-Delivery: %s\r\nX-Hub-Signature-256: sha256=%s\r\nContent-Length: %d\r\n\r\n%s",
			id, hex.EncodeToString(mac.Sum(nil)), len(body), body)
		b.requests = append(b.requests, request)
		if i%twinEvery == 0 {
			b.requests = append(b.requests, request)
		}
	}
	return b
}

// send makes all deliveries over a number of connections and returns how long
// the answers took, and how many were made in a second.
func (b burst) send(t *testing.T, addr string, connections int) (took *sample, rate float64) {
	t.Helper()
	took = &sample{}
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range connections {
		wg.Go(func() {
			if err := b.sendOver(addr, &next, took); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return took, float64(len(b.requests)) / time.Since(began).Seconds()
}

// sendOver takes deliveries over one connection until none is left.
func (b burst) sendOver(addr string, next *atomic.Int64, took *sample) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for n := next.Add(1) - 1; n < int64(len(b.requests)); n = next.Add(1) - 1 {
		began := time.Now()
		if _, err := conn.Write(b.requests[n]); err != nil {
			return err
		}
		if err := readAnswer(in); err != nil {
			return err
		}
		took.add(time.Since(began))
	}
	return nil
}

// TestLoadBurst: a burst is taken by a real `ship serve`, every delivery lies in
// its session's inbox once, and it is as fast as it can be beside a server that
// only reads. They are measured in turns, so that both meet the same machine.
func TestLoadBurst(t *testing.T) {
	loaded(t)
	n, rounds := size(600, 10_000), size(1, 3)
	r := newRig(t, rigOptions{})
	r.role = "intake"
	r.start()
	bare := startBare(t)
	sent := map[string]bool{}
	var shipRates, bareRates []string
	var sum, barely float64
	var took, bareTook *sample
	for round := range rounds {
		b := newBurst(round*n, n)
		for id := range b.ids {
			sent[id] = true
		}
		var rate, other float64
		bareTook, other = b.send(t, bare, benchConnections)
		took, rate = b.send(t, r.addr, benchConnections)
		sum, barely = sum+rate, barely+other
		shipRates, bareRates = append(shipRates, fmt.Sprintf("%.0f", rate)), append(bareRates, fmt.Sprintf("%.0f", other))
		r.taken(t, sent)
		r.emptied(t)
		clear(sent)
	}
	report(t, "a burst of %d deliveries and %d twins, %d connections, 28 KB, appendfsync always: %s/s (%s); a bare server %s/s (%s); ratio %.2f; each accepted once",
		n, (n+twinEvery-1)/twinEvery, benchConnections, strings.Join(shipRates, ", "), took, strings.Join(bareRates, ", "), bareTook, sum/barely)
	r.stop()
}

// taken demands that the inboxes hold each of these deliveries once, and no
// other.
func (r *rig) taken(t *testing.T, sent map[string]bool) {
	t.Helper()
	store := r.openStore(t)
	ids, err := store.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, id := range ids {
		for after := int64(0); ; {
			events, err := store.Read(t.Context(), id, after)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				seen[e.Delivery]++
				after = e.Seq
			}
			if len(events) == 0 {
				break
			}
		}
	}
	twice := 0
	for id, n := range seen {
		if n > 1 || !sent[id] {
			twice++
		}
	}
	if len(seen) != len(sent) || twice > 0 {
		t.Errorf("%d deliveries were sent, %d were taken, %d of them twice or from nowhere", len(sent), len(seen), twice)
	}
}

// emptied forgets all sessions.
func (r *rig) emptied(t *testing.T) {
	t.Helper()
	store := r.openStore(t)
	ids, err := store.Sessions(t.Context())
	for _, id := range ids {
		if err == nil {
			err = store.Forget(t.Context(), id)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// openStore opens the rig's Redis for the rest of the test.
func (r *rig) openStore(t *testing.T) *redis.Store {
	t.Helper()
	store, err := redis.Open(t.Context(), redis.Options{URL: r.redis.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}
