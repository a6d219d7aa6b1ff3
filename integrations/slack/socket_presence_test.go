package slack

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"ship/integrations/slack/slacktest"
)

// gaps runs a socket that tells of gaps.
func gaps(t *testing.T, x *exchange, connections int) (told chan time.Time, unplug func()) {
	told = make(chan time.Time, 10)
	unplug, _ = plug(t, x, newInbox(), func(s *Socket) {
		s.cfg.Connections = connections
		s.cfg.Reconnected = func(_ context.Context, since time.Time) { told <- since }
	})
	return told, unplug
}

// used is a connection that was greeted: what comes after that is read after it.
func (x *exchange) used(t *testing.T) *websocket.Conn {
	t.Helper()
	c := x.conn(t)
	send(t, c, envelopes("events_api", "e", happens(says("lunch?"))))
	acked(t, c)
	return c
}

// TestSocketTellsOfGaps: what Slack had to tell while there was no connection
// may be lost.
func TestSocketTellsOfGaps(t *testing.T) {
	t.Parallel()
	x, begun := newExchange(t), time.Now()
	told, unplug := gaps(t, x, 1)
	for range 2 {
		_ = x.used(t).Close()
	}
	x.used(t)
	unplug()
	if len(told) != 2 {
		t.Fatalf("told of %d gaps", len(told))
	}
	if since := <-told; since.Before(begun.Add(-time.Minute)) || since.After(time.Now()) {
		t.Errorf("a gap since %s", since)
	}
}

// TestSocketKeepsSilent: while one of several connections is there, nothing is
// lost.
func TestSocketKeepsSilent(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	told, unplug := gaps(t, x, 2)
	one, other := x.used(t), x.used(t)
	_ = one.Close()
	x.used(t)
	send(t, other, object{"type": "disconnect", "reason": "warning"})
	x.used(t)
	_ = other.Close()
	unplug()
	if len(told) != 0 {
		t.Errorf("told of a gap since %s", <-told)
	}
}

// TestRecoverAfterGap: over sockets nobody waits for the next look.
func TestRecoverAfterGap(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix it"})
	o.recovery.catchUp(t.Context(), time.Now().Add(-time.Minute))
	if got := texts(o.taken); !slices.Equal(got, []string{"instruct fix it"}) {
		t.Errorf("took %q", got)
	}
	o.RevokeToken()
	o.recovery.catchUp(t.Context(), time.Now())
	if line := o.log.String(); !strings.Contains(line, "count=1") || !strings.Contains(line, "token_revoked") {
		t.Errorf("logged\n%s", line)
	}
}
