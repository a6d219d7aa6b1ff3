package redis

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/session"
	"ship/session/redis/redistest"
)

// logins are those of deploy/redis/users.acl.
var logins = redistest.Login{Replica: "replica", Sentinel: "sentinel", Password: password}

// TestSentinelFailover kills the primary under a hail of deliveries that each
// wait for the replica. When that took over, all that was accepted is there,
// and the owner of a session goes on. All users have the rights of users.acl.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	w := redistest.StartWatched(t, logins, "--aclfile", aclFile(t))
	ctx := t.Context()
	s := openWith(t, Options{URL: w.URL("ship:" + password + "@"), Wait: Wait{Replicas: 1}})
	d, err := s.Durability(ctx)
	if err != nil || !d.Safe() || !strings.Contains(d.String(), "1 replica") {
		t.Errorf("Durability = %s, %v", d, err)
	}
	if _, err := s.Append(ctx, request("gh.3.3", "first")); err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(ctx, "gh.3.3", "t1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	accepted := hail(t, s, 300, w.Primary.Kill)
	killed := time.Now()

	s.wait = Wait{} // of the two servers one is left
	retry(t, func() (int64, error) { return s.Renew(ctx, c.Lease, time.Hour) })
	t.Logf("another server took over, and was found, after %s", time.Since(killed).Round(time.Millisecond))
	for key, seq := range accepted {
		r, err := s.Append(ctx, request("gh.1.1", key))
		if err != nil || !r.Duplicate || r.Seq != seq {
			t.Errorf("%s was accepted as %d, and is %+v now: %v", key, seq, r, err)
		}
	}
	if err := s.Commit(ctx, c.Lease, session.Commit{Cursor: 1, State: []byte("{}"), Release: true, Due: -1}); err != nil {
		t.Errorf("the owner's commit after the failover: %v", err)
	}
}

// hail appends from several callers until enough were accepted, strikes, and
// returns what was accepted until then and after it.
func hail(t *testing.T, s *Store, enough int, strike func()) map[string]int64 {
	t.Helper()
	type told struct {
		key string
		seq int64
	}
	answers, stop := make(chan told), make(chan struct{})
	const callers = 8
	for i := range callers {
		go func() {
			defer func() { answers <- told{} }()
			for n := 0; ; n++ {
				key := fmt.Sprintf("%d-%d", i, n)
				r, err := s.Append(t.Context(), request("gh.1.1", key))
				if err != nil {
					return
				}
				answers <- told{key, r.Seq}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
	}
	accepted := make(map[string]int64)
	for ended := 0; ended < callers; {
		a := <-answers
		if a.key == "" {
			ended++
			continue
		}
		accepted[a.key] = a.seq
		if len(accepted) == enough {
			// The others go on: what they are told in these moments counts.
			go func() { strike(); close(stop) }()
		}
	}
	<-stop
	return accepted
}

// TestUnconfirmed: a delivery that the replica did not take in time is refused,
// and accepted when it is repeated and the replica is back.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	port := redistest.Port(t)
	primary := redistest.Start(t, "--bind", "127.0.0.1", "--port", port, "--repl-diskless-sync-delay", "0")
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", port)
	s := openWith(t, Options{URL: primary.URL(), Wait: Wait{Replicas: 1, For: 200 * time.Millisecond}})
	retry(t, func() (session.Receipt, error) { return s.Append(t.Context(), request("gh.1.1", "a")) })

	replica.Freeze()
	for range 2 { // the second time it is a duplicate, and not confirmed either
		if r, err := s.Append(t.Context(), request("gh.1.1", "b")); !errors.Is(err, errUnconfirmed) {
			t.Errorf("Append = %+v, %v; want it not confirmed", r, err)
		}
	}
	replica.Thaw()
	r := retry(t, func() (session.Receipt, error) { return s.Append(t.Context(), request("gh.1.1", "b")) })
	if !r.Duplicate || r.Seq != 2 {
		t.Errorf("Append = %+v, want the one that was written", r)
	}
	if d, err := s.Durability(t.Context()); err != nil || d.Replicas != 1 {
		t.Errorf("Durability = %+v, %v; want it to see the replica", d, err)
	}
}

// TestTooFewReplicas: without a replica nothing is accepted, and the start says
// so.
func TestTooFewReplicas(t *testing.T) {
	t.Parallel()
	s := openWith(t, Options{URL: redistest.Start(t).URL(), Wait: Wait{Replicas: 1, For: time.Millisecond}})
	if r, err := s.Append(t.Context(), request("gh.1.1", "a")); !errors.Is(err, errUnconfirmed) {
		t.Errorf("Append = %+v, %v; want it not confirmed", r, err)
	}
	d, err := s.Durability(t.Context())
	if err != nil || d.Safe() || !strings.Contains(d.String(), "accepts nothing") {
		t.Errorf("Durability = %s, %v; want it to say that nothing is accepted", d, err)
	}
}

// TestWaitForDisk: an everysec server that knows WAITAOF accepts what is on its
// disk only, or is not used.
func TestWaitForDisk(t *testing.T) {
	t.Parallel()
	srv := redistest.StartNewer(t, "--appendfsync", "everysec")
	s := openWaiting(t, srv)
	checkInboxes(t, s, appendAll(t, s, 100))
	if d, err := s.Durability(t.Context()); err != nil || !d.Safe() {
		t.Errorf("Durability = %s, %v", d, err)
	}
}

// openWaiting skips the test where the server's word is not good: that Open
// finds this out is all that can be shown then.
func openWaiting(t *testing.T, srv *redistest.Server) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{URL: srv.URL(), Wait: Wait{Disk: true}})
	if errors.Is(err, errHasty) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestTruthful: a server that confirms at once, whatever its disk does, is found
// out, and one that waits for its disk is believed.
func TestTruthful(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		every time.Duration // it syncs
		want  error
	}{"honest": {time.Second, nil}, "hasty": {0, errHasty}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := openClient(t, "unix://"+confirmer(t, test.every)).Conn()
			defer conn.Close()
			if err := truthful(t.Context(), conn); !errors.Is(err, test.want) {
				t.Errorf("truthful = %v, want %v", err, test.want)
			}
		})
	}
}

// confirmer is a server that knows SET and WAITAOF, and syncs at intervals.
func confirmer(t *testing.T, every time.Duration) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ship")
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			conns.Go(func() { confirmAll(conn, every) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
		_ = os.RemoveAll(dir)
	})
	return socket
}

// confirmAll answers the words of commands that it knows, until the client ends.
func confirmAll(conn net.Conn, every time.Duration) {
	defer func() { _ = conn.Close() }()
	var synced time.Time
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		answer := ""
		switch strings.ToLower(lines.Text()) {
		case "hello":
			answer = "-ERR unknown command\r\n"
		case "set":
			answer = "+OK\r\n"
		case "waitaof":
			time.Sleep(time.Until(synced.Add(every))) // as long as the disk takes
			synced, answer = time.Now(), "*2\r\n:1\r\n:0\r\n"
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// TestWaitForDiskRefused: a server that cannot confirm is not used as if it
// could.
func TestWaitForDiskRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, want string
		start      func(t *testing.T) *redistest.Server
	}{
		{"unknown", "7.2", func(t *testing.T) *redistest.Server {
			return redistest.Start(t, withoutWaitAOF(t)...)
		}},
		{"no file", "appendonly yes", func(t *testing.T) *redistest.Server {
			return redistest.StartNewer(t, "--appendonly", "no")
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), Options{URL: test.start(t).URL(), Wait: Wait{Disk: true}})
			if err == nil {
				t.Fatal("Open succeeded", s.Close())
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: %v; want it to say %q", err, test.want)
			}
		})
	}
}

// withoutWaitAOF are arguments that make the server an old one, if it is not.
func withoutWaitAOF(t *testing.T) []string {
	t.Helper()
	rdb := openClient(t, redistest.Start(t).URL())
	found, err := rdb.Do(t.Context(), "COMMAND", "INFO", "WAITAOF").Slice()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 || found[0] == nil {
		return nil
	}
	return []string{"--rename-command", "WAITAOF", ""}
}
