package redis_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ship/session/redis/redistest"
)

// TestWakesAfterRestart: the subscription comes back by itself.
func TestWakesAfterRestart(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv)
	ctx, cancel := context.WithCancelCause(t.Context())
	ch := s.Wakes(ctx)
	var n int
	await := func() {
		t.Helper()
		limit := time.After(time.Minute)
		for {
			n++
			mustAppend(t, s, fmt.Sprint(n))
			select {
			case <-ch:
				return
			case <-limit:
				t.Fatal("no wake came")
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	await()
	srv.Kill()
	srv.Restart()
	for len(ch) > 0 {
		<-ch // of before
	}
	await()
	cancel(errors.New("enough"))
	for range ch { // ends, for it is closed
	}
}
