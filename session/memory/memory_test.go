package memory_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ship/session"
	"ship/session/memory"
	"ship/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	sessiontest.RunStore(t, func(*testing.T) sessiontest.Stores { return memory.New() })
}

func TestVault(t *testing.T) {
	sessiontest.RunVault(t, func(*testing.T) sessiontest.Vault { return &memory.Vault{} })
}

func TestQuota(t *testing.T) {
	sessiontest.RunQuota(t, func(*testing.T) session.Quota { return &memory.Quota{} })
}

func asked(key string, keep time.Duration) session.Delivery {
	return session.Delivery{
		Session: "gh.1.1", Keys: []string{key}, Keep: keep,
		Event: session.Event{V: session.EventVersion, Kind: session.Asked},
	}
}

func TestTimesPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		ctx := t.Context()
		if _, err := s.Append(ctx, asked("a", 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Claim(ctx, "gh.1.1", "t1", 15*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15*time.Second - time.Millisecond)
		if _, err := s.Claim(ctx, "gh.1.1", "t2", time.Second); !errors.Is(err, session.ErrNotDue) {
			t.Errorf("Claim within the lease: %v, want ErrNotDue", err)
		}
		time.Sleep(time.Millisecond)
		if c, err := s.Claim(ctx, "gh.1.1", "t2", time.Second); err != nil || !c.Stolen {
			t.Errorf("Claim at the lease's end = %+v, %v; want it stolen", c, err)
		}
		// A delivery that does not say is remembered for seven days.
		time.Sleep(7*24*time.Hour - 16*time.Second)
		if r, err := s.Append(ctx, asked("a", 0)); err != nil || !r.Duplicate {
			t.Errorf("Append in the seventh day = %+v, %v; want a duplicate", r, err)
		}
		time.Sleep(16 * time.Second)
		if r, err := s.Append(ctx, asked("a", 0)); err != nil || r.Duplicate {
			t.Errorf("Append after seven days = %+v, %v; want a new event", r, err)
		}
	})
}

func TestTranscriptExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		ctx := t.Context()
		write := func(line string) {
			if err := s.Write(ctx, "gh.1.1", []string{line}); err != nil {
				t.Fatal(err)
			}
		}
		write("old")
		_, cursor, err := s.Lines(ctx, "gh.1.1", "", 10)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * 24 * time.Hour)
		if lines, _, err := s.Lines(ctx, "gh.1.1", "", 10); err != nil || len(lines) != 0 {
			t.Errorf("lines after seven days = %q, %v", lines, err)
		}
		write("new")
		// Who still holds a cursor into what expired must not miss the new line.
		if lines, _, err := s.Lines(ctx, "gh.1.1", cursor, 10); err != nil || !slices.Equal(lines, []string{"new"}) {
			t.Errorf("lines = %q, %v; want the new one", lines, err)
		}
	})
}

func TestAccountExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		for _, want := range []int{1, 2} {
			if got, err := s.Spend(t.Context(), "a", session.Usage{Calls: 1}); err != nil || got.Calls != want {
				t.Fatalf("Spend = %+v, %v; want %d calls", got, err, want)
			}
			time.Sleep(29 * 24 * time.Hour)
		}
		time.Sleep(24 * time.Hour)
		if got, err := s.Spend(t.Context(), "a", session.Usage{Calls: 1}); err != nil || got.Calls != 1 {
			t.Errorf("Spend 30 days later = %+v, %v; want 1 call", got, err)
		}
	})
}

func TestWakesInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		ctx, cancel := context.WithCancelCause(t.Context())
		ch := s.Wakes(ctx)
		for i := range 1000 { // nobody listens; nobody blocks
			if _, err := s.Append(ctx, asked(fmt.Sprint(i), time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if id := <-ch; id != "gh.1.1" {
			t.Errorf("wake of %q", id)
		}
		cancel(nil)
		synctest.Wait()
		for range ch { // ends, for it is closed
		}
		if _, err := s.Append(t.Context(), asked("after", time.Hour)); err != nil {
			t.Error(err)
		}
	})
}

func TestHook(t *testing.T) {
	t.Parallel()
	s := memory.New()
	var points []string
	s.Hook = func(_ context.Context, point string) { points = append(points, point) }
	ctx := t.Context()
	if _, err := s.Append(ctx, asked("a", time.Hour)); err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(ctx, "gh.1.1", "t1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(ctx, c.Lease, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, c.Lease, session.Commit{Cursor: 1, Release: true, Due: -1}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"append.before", "append.after", "claim.before", "claim.after",
		"renew.before", "renew.after", "commit.before", "commit.after",
	}
	if !slices.Equal(points, want) {
		t.Errorf("points %q, want %q", points, want)
	}
}

// TestHookEndsCaller: a crash before a write leaves nothing, one after it
// leaves all, and neither leaves the store locked.
func TestHookEndsCaller(t *testing.T) {
	t.Parallel()
	for point, want := range map[string]int{"append.before": 0, "append.after": 1} {
		s := memory.New()
		s.Hook = func(_ context.Context, p string) {
			if p == point {
				runtime.Goexit()
			}
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = s.Append(context.Background(), asked("a", time.Hour)) // never returns
		}()
		<-ended
		if ids, err := s.Sessions(t.Context()); err != nil || len(ids) != want {
			t.Errorf("%s: sessions %v, %v; want %d", point, ids, err, want)
		}
	}
}
