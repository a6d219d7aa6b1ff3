package redis

import (
	"context"
	"fmt"

	"ship/session"
)

// Places are session.Places of all workers. Whoever has got a place while
// another asked for one is told as a session to look at, see Store.Wakes.
type Places struct{ store *Store }

var _ session.Places = (*Places)(nil)

// Places returns the store's places. They are as good as the store, and close
// with it.
func (s *Store) Places() *Places { return &Places{s} }

// Take implements session.Places.
func (p *Places) Take(ctx context.Context, s session.Stake) (session.Standing, error) {
	line, full, next, err := p.run(ctx, string(s.ID), s.Epoch, wholeMS(s.Keep), wholeMS(s.Wait), s.Worker, s.Person,
		s.Most.Worker, s.Most.Person, s.Most.All, s.AtWork)
	if err != nil {
		return session.Standing{}, fmt.Errorf("take a place for %s: %w", s.ID, err)
	}
	return session.Standing{Line: line, Full: session.Full(full), Next: next}, nil
}

// Release implements session.Places.
func (p *Places) Release(ctx context.Context, id session.ID, epoch int64) ([]session.ID, error) {
	_, _, next, err := p.run(ctx, string(id), epoch)
	if err != nil {
		return nil, fmt.Errorf("release the place of %s: %w", id, err)
	}
	return next, nil
}

func (p *Places) run(ctx context.Context, args ...any) (line int, full string, next []session.ID, err error) {
	res, err := p.store.run(ctx, placeScript, placeKeys(), args...)
	if err != nil {
		return 0, "", nil, err
	}
	fields, ok := res.([]any)
	if !ok || len(fields) != 3 {
		return 0, "", nil, fmt.Errorf("unexpected answer %v", res)
	}
	place, isPlace := fields[0].(int64)
	full, isText := fields[1].(string)
	given, isList := fields[2].([]any)
	if !isPlace || !isText || !isList {
		return 0, "", nil, fmt.Errorf("unexpected answer %v", res)
	}
	for _, id := range given {
		next = append(next, session.ID(fmt.Sprint(id)))
	}
	return int(place), full, next, nil
}

// placeKeys share a slot, as nothing else of this store does that is not of one
// session: the places are one thing.
func placeKeys() []string {
	prefix := tag(shardOf("places")) + ":places:"
	return []string{prefix + "held", prefix + "line", prefix + "tickets"}
}
