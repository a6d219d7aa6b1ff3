package redis

import (
	"errors"
	"strings"
	"testing"

	"ship/session"
)

// FuzzParse: whatever is wrong with a URL, its password is not repeated.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"localhost:6379", "127.0.0.1", "[::1]:6379/2", "host:port", "h/1/2", "h?db=x", "h?read_timeout=1h&pool_size=3", "%zz", " "} {
		f.Add("redis", seed)
		f.Add("rediss", seed)
		f.Add("unix", seed)
		f.Add("http", seed)
		f.Add("redis+cluster", seed)
		f.Add("rediss+sentinel", seed+"/main")
	}
	f.Fuzz(func(t *testing.T, scheme, rest string) {
		const secret = "s3cr3t-Pa55"
		if strings.Contains(scheme+rest, secret) {
			t.Skip()
		}
		a, err := parse(scheme + "://user:" + secret + "@" + rest)
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the password: %v", err)
			}
			return
		}
		if shown := a.String(); strings.Contains(shown, secret) {
			t.Errorf("the address shows the password: %s", shown)
		}
		opts := a.single
		if opts == nil {
			if a.password != secret || len(a.hosts) == 0 {
				t.Errorf("parsed as %+v", a)
			}
			return
		}
		if !opts.ContextTimeoutEnabled || opts.MaxRetries != -1 || opts.ReadTimeout != commandTime {
			t.Errorf("a URL changed what safety rests on: %+v", opts)
		}
	})
}

// FuzzInfoFields: INFO is read from a server that may be anything.
func FuzzInfoFields(f *testing.F) {
	f.Add("# Server\r\nredis_version:7.0.15\r\nrole:master\r\n")
	f.Add(":\n::\nx")
	f.Add("")
	f.Fuzz(func(t *testing.T, info string) {
		for name, value := range infoFields(info) {
			if !strings.Contains(info, name+":"+value) {
				t.Errorf("field %q: %q is not in %q", name, value, info)
			}
		}
	})
}

// FuzzParseEntry: an entry that is none of ours is an error, not a panic and
// not an event.
func FuzzParseEntry(f *testing.F) {
	f.Add("1-0", "v", "1", "at", "1766000000000", "e", `{"v":1,"k":"asked"}`)
	f.Add("x", "v", "x", "at", "x", "e", "x")
	f.Add("", "", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, id, a, b, c, d, e, g string) {
		events, err := decode([]any{[]any{id, []any{a, b, c, d, e, g}}})
		if err == nil && len(events) != 1 {
			t.Errorf("%d events without an error", len(events))
		}
	})
}

func TestDecodeForeign(t *testing.T) {
	t.Parallel()
	fields := []any{"v", "1", "at", "1", "e", `{"v":1}`}
	for _, reply := range []any{"x", []any{"x"}, []any{[]any{"1-0"}}, []any{[]any{int64(1), fields}}, []any{[]any{"x-0", fields}}, []any{[]any{"1-0", "x"}}} {
		if events, err := decode(reply); err == nil {
			t.Errorf("decode(%v) = %v, want an error", reply, events)
		}
	}
	newer := []any{"v", "99", "at", "1", "e", "not even JSON"}
	if events, err := decode([]any{[]any{"1-0", newer}}); !errors.Is(err, session.ErrTooNew) {
		t.Errorf("decode of a newer event = %v, %v; want ErrTooNew", events, err)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"7.0.15": true, "7.4.0": true, "8.0": true, "10.1.2": true, "6.2.14": false, "5": false, "": false, "x": false,
	} {
		err := Durability{Version: version, Eviction: "noeviction", role: "master"}.check()
		if (err == nil) != ok {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

// TestServersAreVerified: no address makes TLS believe whoever answers, and the
// error names the way that does not.
func TestServersAreVerified(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-Pa55"
	for _, query := range []string{"skip_verify=true", "db=1&skip_verify=1"} {
		err := CheckAddress("rediss://u:" + secret + "@host:6380/?" + query)
		if err == nil || !strings.Contains(err.Error(), "redis.ca_file") || strings.Contains(err.Error(), secret) {
			t.Errorf("with %s: %v", query, err)
		}
	}
	if err := CheckAddress("rediss://host:6380/0"); err != nil {
		t.Error(err)
	}
}
