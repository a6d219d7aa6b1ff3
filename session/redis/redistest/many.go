package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Port returns a TCP port of this machine that was free a moment ago.
func Port(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// Cluster is three primaries, each with a third of the slots, and a replica of
// the first.
type Cluster struct {
	Primaries [3]*Server
	Replica   *Server
	hosts     []string
}

// StartCluster runs a cluster until the test ends. A primary that is gone for
// half a second is replaced.
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{}
	var ports, buses []string
	start := func() *Server {
		port, bus := Port(tb), Port(tb)
		ports, buses = append(ports, port), append(buses, bus)
		c.hosts = append(c.hosts, "127.0.0.1:"+port)
		return Start(tb, append([]string{
			"--bind", "127.0.0.1", "--port", port, "--cluster-port", bus, "--cluster-enabled", "yes",
			"--cluster-node-timeout", "500", "--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0",
		}, args...)...)
	}
	for i := range c.Primaries {
		c.Primaries[i] = start()
	}
	c.Replica = start()
	for i, slots := range []string{"0 5460", "5461 10922", "10923 16383"} {
		c.Primaries[i].Do("CLUSTER ADDSLOTSRANGE", slots)
		c.Primaries[i].Do("CLUSTER SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for i := 1; i < len(ports); i++ {
		c.Primaries[0].Do("CLUSTER MEET 127.0.0.1", ports[i], buses[i])
	}
	first := c.Primaries[0].Do("CLUSTER MYID")
	await(tb, "the replica to know its primary", func() bool {
		answer, err := c.Replica.ask("CLUSTER REPLICATE " + first)
		return err == nil && answer == "+OK"
	})
	for _, s := range append(c.Primaries[:], c.Replica) {
		await(tb, "the cluster to form", func() bool { return c.complete(s) })
	}
	await(tb, "the replica to follow", func() bool { return c.Primaries[0].field("connected_slaves") == "1" && c.Replica.Following() })
	return c
}

// complete: s knows all, and that the replica is one.
func (c *Cluster) complete(s *Server) bool {
	return strings.Contains(s.Do("CLUSTER INFO"), "cluster_state:ok") && strings.Contains(s.Do("CLUSTER INFO"), "cluster_slots_ok:16384") &&
		strings.Count(s.Do("CLUSTER NODES"), " connected") == len(c.hosts) &&
		strings.Contains(s.Do("CLUSTER NODES"), "slave")
}

// URL for redis.Options.
func (c *Cluster) URL() string { return "redis+cluster://" + strings.Join(c.hosts, ",") }

// Watched is a primary, its replica, and a Sentinel that puts the replica in
// the primary's place when that is gone for half a second.
type Watched struct {
	Primary, Replica *Server
	sentinel         string // host and port
}

// SentinelName is what the primary is called.
const SentinelName = "ship"

// Login is with what the servers and their Sentinel speak with each other, when
// they want a password.
type Login struct{ Replica, Sentinel, Password string }

// StartWatched runs them until the test ends. Both servers get the arguments.
func StartWatched(tb testing.TB, l Login, args ...string) *Watched {
	tb.Helper()
	first, second := Port(tb), Port(tb)
	args = append([]string{"--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0"}, args...)
	if l.Password != "" {
		args = append(args, "--masteruser", l.Replica, "--masterauth", l.Password)
	}
	w := &Watched{
		Primary: Start(tb, append(args, "--port", first)...),
		Replica: Start(tb, append(args, "--port", second, "--replicaof", "127.0.0.1", first)...),
	}
	sentinel := prepare(tb)
	w.sentinel = "127.0.0.1:" + Port(tb)
	sentinel.args = []string{sentinel.sentinelConf(first, w.sentinel, l), "--sentinel"}
	sentinel.Restart()
	await(tb, "the Sentinel to find the replica", func() bool {
		info, err := sentinel.ask("INFO sentinel")
		return err == nil && strings.Contains(info, "status=ok") && strings.Contains(info, "slaves=1")
	})
	return w
}

// sentinelConf writes its settings, which it changes itself.
func (s *Server) sentinelConf(primary, listen string, l Login) string {
	s.tb.Helper()
	_, port, _ := strings.Cut(listen, ":")
	lines := []string{
		"bind 127.0.0.1", "port " + port, "unixsocket " + s.Socket(), "dir " + s.dir,
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %s 1", SentinelName, primary),
		fmt.Sprintf("sentinel down-after-milliseconds %s 500", SentinelName),
		fmt.Sprintf("sentinel failover-timeout %s 5000", SentinelName),
	}
	if l.Password != "" {
		lines = append(lines, fmt.Sprintf("sentinel auth-user %s %s", SentinelName, l.Sentinel),
			fmt.Sprintf("sentinel auth-pass %s %s", SentinelName, l.Password))
	}
	path := filepath.Join(s.dir, "sentinel.conf")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		s.tb.Fatal(err)
	}
	return path
}

// URL for redis.Options; login is USER:PASSWORD@, or nothing.
func (w *Watched) URL(login string) string {
	return "redis+sentinel://" + login + w.sentinel + "/" + SentinelName
}

// Following tells whether a replica has all of its primary.
func (s *Server) Following() bool { return s.field("master_link_status") == "up" }

// field of INFO; empty when the server does not answer.
func (s *Server) field(name string) string {
	info, _ := s.ask("INFO replication") // asked again by those who wait
	_, rest, _ := strings.Cut(info, name+":")
	value, _, _ := strings.Cut(rest, "\r")
	return value
}

// await polls, for servers give no signal.
func await(tb testing.TB, what string, there func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if there() {
			return
		}
	}
	tb.Fatalf("waited %s for %s", patience, what)
}
