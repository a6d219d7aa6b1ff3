package slack

import (
	"errors"
	"testing"
	"time"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"T1/C1/1795000000.000100", "E1/D1/1.0", "T1/C1/" + commandOf("1.2.x")} {
		th, err := parseThread(key)
		if err != nil || th.key() != key || th.session().Key != key {
			t.Errorf("%q: %+v, %v", key, th, err)
		}
	}
	for _, key := range []string{"", "/", "//", "T1/C1", "T1/C1/", "T1/C1/now", "T1/C1/1.2/3", "T1/../1.2", "T1//1.2", "T 1/C1/1.2", "T1/C1/c-123", "T1/C1/-1.2"} {
		if th, err := parseThread(key); !errors.Is(err, errKey) {
			t.Errorf("%q: %+v, %v", key, th, err)
		}
	}
	for _, s := range []string{"message/1.2", "button/1.2", "shortcut/1.2", "command/", "command/1.2", "stop/"} {
		r, err := parseRef(s)
		if err != nil || r.String() != s {
			t.Errorf("%q: %+v, %v", s, r, err)
		}
	}
	for _, s := range []string{"", "message", "message/", "stop/1.2", "other/1.2", "message/1.2/3", "/1.2"} {
		if r, err := parseRef(s); !errors.Is(err, errKey) {
			t.Errorf("%q: %+v, %v", s, r, err)
		}
	}
}

func TestLogins(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ login, user, foreign string }{{"U1", "U1", ""}, {"T2/U1", "U1", "T2"}} {
		user, foreign, err := parseLogin(tt.login)
		if err != nil || user != tt.user || foreign != tt.foreign || login(user, foreign) != tt.login {
			t.Errorf("%q: %q, %q, %v", tt.login, user, foreign, err)
		}
	}
	for _, bad := range []string{"", "/", "T2/", "/U1", "T2/U1/x", "U 1"} {
		if _, _, err := parseLogin(bad); !errors.Is(err, errKey) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMoments(t *testing.T) {
	t.Parallel()
	for ts, want := range map[string]time.Time{
		"1795000000.000100": time.Unix(1795000000, 100_000).UTC(),
		"1795000000.5":      time.Unix(1795000000, 500_000_000).UTC(),
		"":                  {}, "soon": {}, "1795000000": {}, "-1.0": {}, "99999999999999999999.0": {},
	} {
		if got := moment(ts); !got.Equal(want) {
			t.Errorf("%q is %s, want %s", ts, got, want)
		}
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	if got := teamOf(blockID("T1", "a/b")); got != "T1" {
		t.Errorf("got %q", got)
	}
	for _, block := range []string{"", "ship", "ship:sess-1", "ship/T1", "ship/../x", "other/T1/x"} {
		if got := teamOf(block); got != "" {
			t.Errorf("%q is of %q", block, got)
		}
	}
}
