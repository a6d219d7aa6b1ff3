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
	for _, s := range []string{"message/1.2", "button/1.2", "shortcut/1.2", "command/", "command//U1", "command/1.2", "stop/",
		"message/1.2/U1", "shortcut/1.2/W1", "command/1.2/U1", "button/1.2/U1", "button/1.2/repo", "button/1.2/do-3", "button/1.2/choose-12/U1",
	} {
		r, err := parseRef(s)
		if err != nil || r.String() != s {
			t.Errorf("%q: %+v, %v", s, r, err)
		}
	}
	for _, s := range []string{"", "message", "message/", "stop/1.2", "other/1.2", "message/1.2/3", "/1.2",
		"message/1.2/", "message/1.2/do-3", "message/1.2/U1/U1", "message/1.2/T2/U1", "message/1.2/u1", "stop//U1", "command//u1", "command//repo/U1",
		"button/1.2//U1", "button/1.2/U1/do-3", "button/1.2/do-", "button/1.2/do-3/4", "button/1.2/Do-3",
	} {
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

// TestRefsOfPeople: who asked goes with the ref, unless nobody can be mentioned
// by that name.
func TestRefsOfPeople(t *testing.T) {
	t.Parallel()
	for login, want := range map[string]string{
		"U1": "message/1.2/U1", "T2/U1": "message/1.2/U1", "W1": "message/1.2/W1", "ada": "message/1.2", "": "message/1.2", "U1>": "message/1.2", "B1": "message/1.2",
	} {
		if got := (ref{kind: refMessage, ts: "1.2"}).of(login).String(); got != want {
			t.Errorf("of %q it is %q, want %q", login, got, want)
		}
	}
	if got := (ref{kind: refStop}).of("U1").String(); got != "stop/" {
		t.Errorf("got %q", got)
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]string{
		blockID("T1", ofTurn(nameDo, 3)): "do-3", blockID("T1", nameRepo): "repo", blockID("T1", "a/b"): "", blockID("T1", ""): "", "ship/T1": "", "do-3": "", "other/T1/do-3": "",
	} {
		if got := nameOf(block); got != want {
			t.Errorf("%q is called %q, want %q", block, got, want)
		}
	}
	if got := teamOf(blockID("T1", "a/b")); got != "T1" {
		t.Errorf("got %q", got)
	}
	for _, block := range []string{"", "ship", "ship:sess-1", "ship/T1", "ship/../x", "other/T1/x"} {
		if got := teamOf(block); got != "" {
			t.Errorf("%q is of %q", block, got)
		}
	}
}
