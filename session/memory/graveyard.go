package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"ship/session"
)

// grave is a dead letter, encoded, under the number that is its id.
type grave struct {
	id   string
	data []byte
}

// bury is called with the lock held.
func (s *Store) bury(dead [][]byte) {
	for _, data := range dead {
		s.buried++
		s.dead = append(s.dead, grave{strconv.Itoa(s.buried) + "-0", data})
	}
	s.dead = s.dead[max(len(s.dead)-maxDead, 0):]
}

func (g grave) letter() (session.DeadLetter, error) {
	var d session.DeadLetter
	if err := json.Unmarshal(g.data, &d); err != nil {
		return d, fmt.Errorf("decode dead letter %s: %w", g.id, err)
	}
	d.ID = g.id
	return d, nil
}

// DeadLetters implements session.Graveyard.
func (s *Store) DeadLetters(ctx context.Context, n int) ([]session.DeadLetter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	letters := make([]session.DeadLetter, min(max(n, 0), len(s.dead)))
	for i := range letters {
		var err error
		if letters[i], err = s.dead[len(s.dead)-1-i].letter(); err != nil {
			return nil, err
		}
	}
	return letters, nil
}

// DeadLetter implements session.Graveyard.
func (s *Store) DeadLetter(ctx context.Context, id string) (session.DeadLetter, error) {
	if err := ctx.Err(); err != nil {
		return session.DeadLetter{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.dead {
		if g.id == id {
			return g.letter()
		}
	}
	return session.DeadLetter{}, session.ErrUnknown
}

// DropDeadLetter implements session.Graveyard.
func (s *Store) DropDeadLetter(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = slices.DeleteFunc(s.dead, func(g grave) bool { return g.id == id })
	return nil
}
