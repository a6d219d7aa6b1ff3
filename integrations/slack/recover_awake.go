package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ship/session"
)

const (
	// wakeful is how long after the last word a thread is still looked at.
	wakeful = 7 * 24 * time.Hour
	// maxAwake threads are looked at, those that moved last first, and maxPeeked
	// sessions are looked up for that, those that began last first.
	maxAwake  = 200
	maxPeeked = 2000
)

// awake notes the threads that are sessions and in which somebody may still
// write.
func (l *look) awake(ctx context.Context) error {
	ids, err := l.archive.Sessions(ctx)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	var all []talk
	for _, t := range ours(ids, l.self.team) {
		k, ok, err := l.state(ctx, t)
		if err != nil {
			return err
		}
		if ok && k.last.After(l.began.Add(-wakeful)) {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b talk) int { return b.last.Compare(a.last) })
	for _, k := range all[:min(len(all), maxAwake)] {
		l.talks[k.thread] = k
	}
	return nil
}

// ours are the threads of a team's sessions, those that began last first.
// Slash commands have one that waits to be told its thread, and then sleeps.
func ours(ids []session.ID, team string) []thread {
	var all []thread
	for _, id := range ids {
		if t, ok := threadOf(id); ok && t.team == team && !t.pending() {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b thread) int { return moment(b.root).Compare(moment(a.root)) })
	return all[:min(len(all), maxPeeked)]
}

// threadOf is the thread that a session is named after.
func threadOf(id session.ID) (thread, bool) {
	parts := strings.Split(string(id), ".")
	if len(parts) != 4 || parts[0] != "sl" {
		return thread{}, false
	}
	t := thread{parts[1], parts[2], parts[3]}
	if !t.pending() {
		t.root = strings.Replace(t.root, "-", ".", 1)
	}
	return t, t.valid()
}

// state is what a session's state says of its thread; ok: there is one. It may
// be one that only a newer release can read.
func (l *look) state(ctx context.Context, t thread) (k talk, ok bool, err error) {
	s, err := l.peek(ctx, t)
	switch {
	case errors.Is(err, session.ErrUnknown):
		return talk{}, false, nil
	case err != nil && !errors.Is(err, session.ErrTooNew):
		return talk{}, false, err
	}
	k = talk{thread: t, last: later(moment(t.root), heardIn(s, t))}
	if s.Turn != nil {
		k.last, k.busy = later(k.last, s.Turn.Finished), s.Turn.Stage != session.Ended
	}
	if s.Asking != nil || k.busy {
		k.last = l.began
	}
	return k, true, nil
}

// heard is up to when what was said in a thread has been read along with what
// was asked there; zero for a thread without a session.
func (l *look) heard(ctx context.Context, t thread) (time.Time, error) {
	s, err := l.peek(ctx, t)
	if errors.Is(err, session.ErrUnknown) || errors.Is(err, session.ErrTooNew) {
		return time.Time{}, nil
	}
	return heardIn(s, t), err
}

func (l *look) peek(ctx context.Context, t thread) (session.State, error) {
	claim, err := l.archive.Peek(ctx, t.id())
	if err != nil {
		return session.State{}, fmt.Errorf("look up %s: %w", t.id(), err)
	}
	return session.DecodeState(t.id(), claim.State)
}

func heardIn(s session.State, t thread) time.Time {
	for _, v := range s.Threads {
		if v.Thread == t.session() {
			return v.Heard
		}
	}
	return time.Time{}
}
