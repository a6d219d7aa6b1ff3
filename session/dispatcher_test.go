package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
	"ship/session/memory"
)

// eager is a store in which mail comes right after a claim was answered.
type eager struct {
	*memory.Store
	mail func()
}

func (s *eager) Claim(ctx context.Context, id session.ID, token string, lease time.Duration) (session.Claim, error) {
	c, err := s.Store.Claim(ctx, id, token, lease)
	if mail := s.mail; err == nil && mail != nil {
		s.mail = nil
		mail()
		synctest.Wait() // the dispatcher has heard of it
	}
	return c, err
}

// TestMailRightAfterAClaim is taken up at once, although nobody coordinates the
// session yet when its wake comes.
func TestMailRightAfterAClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(memory.New())
		s.perform[session.Run] = func(ctx context.Context, _ session.Job) (session.Performed, error) {
			<-ctx.Done()
			return session.Performed{}, context.Cause(ctx)
		}
		asks(t, s.store, "c1", session.Instruct, "fix it")
		s.open(t.Context(), &eager{s.store, func() { asks(t, s.store, "c2", session.Instruct, "and that") }})
		time.Sleep(2 * time.Second) // less than until the lease is renewed
		if got := s.state(t).Turn; got == nil || len(got.Requests) != 2 {
			t.Errorf("the turn is %+v, want it to have both requests", got)
		}
		s.close(t)
	})
}
