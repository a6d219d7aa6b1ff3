package slack

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

// TestOurThreads: sessions are found by their names, the youngest first.
func TestOurThreads(t *testing.T) {
	t.Parallel()
	young, old := thread{team, ch, nextTS}, thread{team, "D0HUMAN", rootTS}
	springboard := thread{team, ch, commandOf("1.2.x")}
	got := ours([]session.ID{
		old.id(), "gh.1.7", springboard.id(), young.id(), thread{"T2EXT", ch, nextTS}.id(),
		"sl.T0SHIP.C0ENG", "sl.T0SHIP.C0ENG.soon", "sl.T0SHIP..1-2", "sl.T0SHIP.C0ENG.1-2.3",
	}, team)
	if diff := cmp.Diff(fmt.Sprint([]thread{young, old}), fmt.Sprint(got)); diff != "" {
		t.Error(diff)
	}
	for _, one := range []thread{young, old, springboard} {
		if got, ok := threadOf(one.id()); !ok || got != one {
			t.Errorf("%s is named after %v", one.id(), got)
		}
	}
}

// TestRevokedIsTold: only the operator can do something about it.
func TestRevokedIsTold(t *testing.T) {
	t.Parallel()
	for _, e := range []object{{"type": "app_uninstalled"}, {"type": "tokens_revoked", "tokens": object{"bot": []string{us}}}} {
		var log bytes.Buffer
		r, err := NewReceiver(ReceiverConfig{
			Secrets: []string{secret}, Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		body := happens(e).json(t)
		if _, err := r.Receive(t.Context(), signed(secret, now, body), body); err != nil {
			t.Fatal(err)
		}
		if line := log.String(); !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "install it again") || !strings.Contains(line, "team="+team) {
			t.Errorf("logged %q", line)
		}
	}
}
