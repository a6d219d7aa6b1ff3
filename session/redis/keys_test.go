package redis

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
	"ship/session/redis/redistest"
)

// idleState is what a session that rests looks like: one pull request, a box
// that is gone, a turn that ended.
const idleState = `{"v":1,"id":"gh.812345678.4321","th":[{"p":"github","k":"812345678/4321","r":"2345678901","s":"9f86d081884c",` +
	`"a":"2026-11-21T03:14:15Z"}],"rp":{"p":"github","n":"octo-org/website","k":"812345678"},"ti":"Dark mode flickers when the settings page is opened twice in a row",` +
	`"ba":"main","br":"ship/4321-dark-mode","hd":"2c26b46b68ffc68ff99b453c1d30413413422d70","pr":{"n":4399,"u":` +
	`"https://github.com/octo-org/website/pull/4399","k":"PR_kwDOABCDEF5nXyZw","d":true},"tu":{"n":2,"s":"ended","oc":{"e":"completed",` +
	`"u":{"c":31,"i":412345,"o":9876,"$":1.27}}},"n":2}`

// TestIdleSessionIsSmall: a session that rests costs at most a kilobyte.
func TestIdleSessionIsSmall(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t))
	ctx := t.Context()
	if size := len(idleState); size < 550 || !json.Valid([]byte(idleState)) {
		t.Fatalf("the state has %d bytes, want a real one of 550", size)
	}
	// Neighbours make the shard's set as large as it is in use: a small one is
	// packed more tightly.
	const neighbours = 1000
	id := session.ID("gh.812345678.4321")
	k := keysOf(id)
	for i := range neighbours {
		if err := s.rdb.Do(ctx, "ZADD", k.sched, 4e12+float64(i), fmt.Sprintf("gh.812345678.%d", 10000+i)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(20) {
		if _, err := s.Append(ctx, request(id, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		c, err := s.Claim(ctx, id, "0123456789abcdef0123456789abcdef", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Commit(ctx, c.Lease, session.Commit{
			Version: i, Cursor: i + 1, State: []byte(idleState), StateVersion: session.StateVersion, Release: true, Due: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var total int64
	for _, key := range []string{k.session, k.state, k.inbox} {
		n := s.rdb.MemoryUsage(ctx, key, 0).Val() // nil, and so 0, for a key that is gone
		t.Logf("%-28s %5d bytes", key, n)
		total += n
	}
	entry := s.rdb.MemoryUsage(ctx, k.sched, 0).Val() / (neighbours + 1)
	t.Logf("%-28s %5d bytes", "its part of "+k.sched, entry)
	if total += entry; total > 1024 || entry == 0 {
		t.Errorf("an idle session takes %d bytes, want at most 1024", total)
	}
	if n := s.rdb.Exists(ctx, k.inbox).Val(); n != 0 {
		t.Error("an inbox that was consumed is still there")
	}
}

// TestKeysAreDocumented: every key that a run makes is in the table of
// docs/redis.md, every key of the table comes up, and each lives as long as
// the table says.
func TestKeysAreDocumented(t *testing.T) {
	t.Parallel()
	documented := documentedKeys(t)
	s := openAt(t, redistest.Start(t))
	ctx := t.Context()
	useEverything(t, s)
	keys, err := s.rdb.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	for _, key := range keys {
		row := find(documented, key)
		if row == nil {
			t.Errorf("%s is not in docs/redis.md", key)
			continue
		}
		used[row.pattern] = true
		kind := s.rdb.Type(ctx, key).Val()
		if !strings.HasPrefix(row.value, kind) {
			t.Errorf("%s is a %s, documented as %q", key, kind, row.value)
		}
		ttl := s.rdb.TTL(ctx, key).Val()
		if expires := ttl > 0; expires == (row.ttl == "none") {
			t.Errorf("%s lives for %s, documented as %q", key, ttl, row.ttl)
		}
	}
	for _, row := range documented {
		if !used[row.pattern] && row.value != "channel" {
			t.Errorf("%s of docs/redis.md did not come up", row.pattern)
		}
	}
}

// keyRow is a line of the table: `pattern` | value | TTL | purpose.
type keyRow struct {
	pattern, value, ttl string
	matches             *regexp.Regexp
}

func find(rows []keyRow, key string) *keyRow {
	for i := range rows {
		if rows[i].matches.MatchString(key) {
			return &rows[i]
		}
	}
	return nil
}

func documentedKeys(t *testing.T) []keyRow {
	t.Helper()
	text, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []keyRow
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\|").FindAllStringSubmatch(string(text), -1) {
		form := regexp.QuoteMeta(m[1])
		form = strings.ReplaceAll(form, regexp.QuoteMeta("{NN}"), `\{(0[0-9]|1[0-5])\}`)
		form = regexp.MustCompile(`<[a-z ]+>`).ReplaceAllString(form, `.+`)
		rows = append(rows, keyRow{m[1], strings.TrimSpace(m[2]), strings.TrimSpace(m[3]), regexp.MustCompile("^" + form + "$")})
	}
	if len(rows) < 8 {
		t.Fatalf("docs/redis.md lists %d keys", len(rows))
	}
	return rows
}

// useEverything leaves something of each kind behind.
func useEverything(t *testing.T, s *Store) {
	ctx := t.Context()
	for _, key := range []string{"github:a", "github:b"} {
		if _, err := s.Append(ctx, request("gh.1.1", key)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Claim(ctx, "gh.1.1", "t", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Commit(ctx, c.Lease, session.Commit{
		Cursor: 1, State: []byte("{}"), Release: true, Dead: []session.DeadLetter{{Session: "gh.1.1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(ctx, "gh.1.1", []string{"line"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Spend(ctx, "gh.1.1:1", session.Usage{Calls: 1}); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Vault().Swap(ctx, "linear.app", 0, []byte("sealed"), time.Hour); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := s.Quota().Take(ctx, "linear.app", session.Allowance{Need: [2]int64{1, 1}, Window: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Vault().Lock(ctx, "linear.app", "me", time.Hour); err != nil || !ok {
		t.Fatal(ok, err)
	}
	p := s.Places()
	mustTake(t, p, onlyOne("gh.1.1"), 0)
	mustTake(t, p, onlyOne("gh.1.2"), 1)
	mustTake(t, p, onlyOne("gh.1.3"), 2)
	if _, err := p.Release(ctx, "gh.1.3", 1); err != nil {
		t.Fatal(err)
	}
	err = s.once(ctx, keysOf("gh.1.1").session, func(node *goredis.Client) error {
		conn := node.Conn()
		defer conn.Close()
		return s.confirm(ctx, conn, markKey(keysOf("gh.1.1").session))
	})
	if err != nil {
		t.Fatal(err)
	}
}
