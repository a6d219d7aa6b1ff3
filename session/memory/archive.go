package memory

import (
	"context"
	"maps"
	"slices"

	"ship/session"
)

// Peek implements session.Archive. The lease that it shows has no token.
func (s *Store) Peek(ctx context.Context, id session.ID) (session.Claim, error) {
	if err := ctx.Err(); err != nil {
		return session.Claim{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.sessions[id]
	if r == nil {
		return session.Claim{}, session.ErrUnknown
	}
	return r.view(id, "", clock())
}

// Sessions implements session.Archive.
func (s *Store) Sessions(ctx context.Context) ([]session.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.sessions)), nil
}

// Scheduled implements session.Register.
func (s *Store) Scheduled(ctx context.Context) ([]session.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []session.ID
	for id, r := range s.sessions {
		if r.waiting {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Forget implements session.Archive. The transcript goes with the session. A
// session whose owner let the lease run out is held by nobody.
func (s *Store) Forget(ctx context.Context, id session.ID) error {
	return s.around(ctx, "forget", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		r := s.sessions[id]
		if r != nil && r.held() && !r.isDue(clock()) {
			return session.ErrNotDue
		}
		delete(s.sessions, id)
		delete(s.logs, id)
		return nil
	})
}
