package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session/redis/redistest"
	"ship/session/sessiontest"
)

// password is of all users of the tests.
const password = "correct-horse"

// aclFile is deploy/redis/users.acl with the password of the tests, and one
// user more who may do everything.
func aclFile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(password))
	hash := "#" + hex.EncodeToString(sum[:])
	filled := strings.ReplaceAll(string(text), "#"+strings.Repeat("0", 64), hash)
	if strings.Count(filled, hash) != 3 {
		t.Fatalf("users.acl should wait for three passwords:\n%s", text)
	}
	path := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(path, []byte(filled+"user admin on "+hash+" allkeys allchannels +@all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// as is the address of a server with a login.
func as(user string, srv *redistest.Server) string {
	return "unix://" + user + ":" + password + "@" + srv.Socket()
}

// TestLeastRights runs everything as the user of deploy/redis/users.acl, who may
// do nothing more than that.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--aclfile", aclFile(t))
	ctx := t.Context()
	admin := openClient(t, as("admin", srv))
	s := openWith(t, Options{URL: as("ship", srv)})
	useEverything(t, s)
	if ok, err := s.Vault().Swap(ctx, "for.good", 0, []byte("sealed"), 0); err != nil || !ok {
		t.Error(ok, err)
	}
	wakes(t, s)
	if _, err := s.Sessions(ctx); err != nil {
		t.Error(err)
	}
	if d, err := s.Durability(ctx); err != nil || !d.Safe() {
		t.Errorf("Durability = %s, %v", d, err)
	}
	if err := admin.ScriptFlush(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	mustForget(t, s)
	contract(t, func() string {
		if err := admin.FlushAll(ctx).Err(); err != nil {
			t.Error(err)
		}
		return as("ship", srv)
	})
	t.Run("NotMore", func(t *testing.T) {
		granted, used := grantedCommands(t), usedCommands(t, admin)
		elsewhere := []string{"select", "command", "cluster|slots", "asking"} // by databases and clusters
		for _, command := range granted {
			if !slices.Contains(used, command) && !slices.Contains(elsewhere, command) {
				t.Errorf("the user may %s, and never does", command)
			}
		}
		refused(t, openClient(t, as("ship", srv)))
	})
}

// contract runs the contract suite on one server after the other test.
func contract(t *testing.T, fresh func() (url string)) {
	var one sync.Mutex
	t.Run("Contract", func(t *testing.T) {
		sessiontest.RunStore(t, func(t *testing.T) sessiontest.Stores {
			one.Lock()
			t.Cleanup(one.Unlock)
			return openWith(t, Options{URL: fresh()})
		})
	})
}

// wakes waits until a wake comes through.
func wakes(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	woken := s.Wakes(ctx)
	for end := time.After(patience); ; {
		if _, err := s.Append(ctx, request("gh.2.2", time.Now().String())); err != nil {
			t.Fatal(err)
		}
		select {
		case <-woken:
			return
		case <-end:
			t.Fatal("nobody was woken")
		case <-time.After(20 * time.Millisecond): // the subscription may come later than the wake
		}
	}
}

func mustForget(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Forget(t.Context(), "gh.1.1"); err != nil {
		t.Error(err)
	}
	if err := s.DropDeadLetter(t.Context(), "00-1-1"); err != nil {
		t.Error(err)
	}
}

// refused: what would do harm.
func refused(t *testing.T, rdb *goredis.Client) {
	t.Helper()
	for _, command := range []string{
		"FLUSHALL", "KEYS *", "CONFIG SET appendfsync no", "GET other", "SET other 1", "SUBSCRIBE other", "PUBLISH other 1",
		"ACL LIST", "CLIENT LIST", "SHUTDOWN", "REPLICAOF NO ONE", "FUNCTION LIST", "MONITOR", "SAVE", "SCRIPT FLUSH",
	} {
		var args []any
		for _, word := range strings.Fields(command) {
			args = append(args, word)
		}
		if err := rdb.Do(t.Context(), args...).Err(); !goredis.IsPermissionError(err) {
			t.Errorf("%s: %v, want it refused", command, err)
		}
	}
}

func openClient(t *testing.T, url string) *goredis.Client {
	t.Helper()
	opts, err := parseSingle(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := goredis.NewClient(opts)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// grantedCommands are what users.acl grants the user ship.
func grantedCommands(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^user ship .*$`).FindString(string(text))
	for _, m := range regexp.MustCompile(` \+([a-z|]+)`).FindAllStringSubmatch(line, -1) {
		commands = append(commands, m[1])
	}
	if len(commands) < 20 {
		t.Fatalf("the user ship may only %v", commands)
	}
	return commands
}

// usedCommands are what was called since the server started.
func usedCommands(t *testing.T, admin *goredis.Client) (commands []string) {
	t.Helper()
	info, err := admin.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for name := range infoFields(info) {
		commands = append(commands, strings.TrimPrefix(name, "cmdstat_"))
	}
	return commands
}

// TestDeployedSettings runs servers with the settings of deploy/redis.
func TestDeployedSettings(t *testing.T) {
	t.Parallel()
	alone := append(deployed(t, "redis.conf"), "--aclfile", aclFile(t))
	srv := redistest.Start(t, alone...)
	s := openWith(t, Options{URL: as("ship", srv)})
	if d, err := s.Durability(t.Context()); err != nil || !d.Safe() {
		t.Errorf("Durability = %s, %v", d, err)
	}
	// Without its replicas a server takes nothing.
	srv = redistest.Start(t, append(alone, deployed(t, "replicas.conf")...)...)
	s, err := Open(t.Context(), Options{URL: as("ship", srv)})
	if err == nil {
		t.Fatal("Open succeeded", s.Close())
	}
	if !strings.Contains(err.Error(), "NOREPLICAS") {
		t.Errorf("Open: %v, want it refused for lack of replicas", err)
	}
}

// deployed are the settings of a file as arguments, but for where the server
// runs: that is the test's own.
func deployed(t *testing.T, file string) (args []string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/redis/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || slices.Contains([]string{"#", "dir", "port", "bind", "aclfile"}, words[0]) {
			continue
		}
		args = append(args, append([]string{"--" + words[0]}, words[1:]...)...)
	}
	return args
}
