package slack

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Kinds of channels, as events have them in channel_type.
const (
	kindPublic  = "channel"
	kindPrivate = "group"
	kindDirect  = "im"
	kindParty   = "mpim"
)

// room is a channel that we are in.
type room struct {
	id, kind string
	// shared with another company's workspace, as far as is known.
	shared bool
}

// listed finds the channels that we are in. A kind that we may not list is left
// out, and so only direct messages are heard in which somebody was answered
// before.
func (l *look) listed(ctx context.Context) error {
	for types, kind := range map[string]string{
		"public_channel": kindPublic, "private_channel": kindPrivate, "im": kindDirect, "mpim": kindParty,
	} {
		err := l.list(ctx, types, kind)
		if lacking(err) {
			l.close(ctx, types)
			continue
		}
		if err != nil {
			return fmt.Errorf("list channels: %w", err)
		}
	}
	for t := range l.talks {
		if _, ok := l.rooms[t.channel]; !ok {
			l.rooms[t.channel] = unlisted(t.channel)
		}
	}
	return nil
}

// unlisted is a channel of which no more is known than its id. It may be shared,
// or people of elsewhere would pass for ours.
func unlisted(id string) room {
	p := room{id: id, kind: kindPublic, shared: true}
	if id[0] == 'D' {
		p.kind = kindDirect
	}
	return p
}

func (l *look) list(ctx context.Context, types, kind string) error {
	const method = "users.conversations"
	form := url.Values{"types": {types}, "exclude_archived": {"true"}, "limit": {strconv.Itoa(pageSize)}}
	for {
		var got answer
		err := l.turn(ctx, method, func(ctx context.Context) (err error) {
			got, err = l.app.ask(ctx, method, form)
			return err
		})
		if err != nil {
			return err
		}
		for _, c := range got.Channels {
			if validID.MatchString(c.ID) {
				l.rooms[c.ID] = room{c.ID, kind, c.Shared}
			}
		}
		if got.More.Cursor == "" {
			return nil
		}
		form.Set("cursor", got.More.Cursor)
	}
}

// lacking: the token has not the scope for that.
func lacking(err error) bool {
	return code(err) == "missing_scope"
}

// close leaves a kind of channels out, and says so once.
func (l *look) close(ctx context.Context, kind string) {
	if !l.closed[kind] {
		l.app.log.InfoContext(ctx, "the app has no scope to look for missed requests there", "where", kind)
	}
	l.closed[kind] = true
}

// channel takes what was said in a channel, and notes the threads in which
// somebody wrote.
func (l *look) channel(ctx context.Context, p room) error {
	from := l.from(p.id)
	messages, err := l.history(ctx, p, from)
	if lacking(err) {
		l.close(ctx, "history of "+p.kind)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read channel %s: %w", p.id, err)
	}
	upTo := from
	for _, m := range slices.Backward(messages) { // the newest come first
		at := moment(m.TS)
		l.note(p, m)
		if m.isReply() || !at.After(from) {
			continue
		}
		if err := l.take(ctx, p, m, time.Time{}); err != nil {
			return err
		}
		upTo = at
	}
	l.saw(p.id, upTo)
	return nil
}

// history is what was said in a channel since a moment, and before that what
// comes on the same page: threads go on under old messages.
func (l *look) history(ctx context.Context, p room, from time.Time) ([]message, error) {
	s := &stretch{channel: p.id, oldest: tsOf(l.began.Add(-recoverable)), size: pageSize}
	var all []message
	for {
		got, err := l.app.next(ctx, s, l.turn)
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
		reached := len(got) > 0 && moment(got[len(got)-1].TS).Before(from)
		if reached || s.cursor == "" {
			return all, nil
		}
	}
}

// note notes the thread of a message, and whether somebody wrote there. A reply
// is in a channel if it was shown to all.
func (l *look) note(p room, m message) {
	t, wrote := thread{l.self.team, p.id, m.TS}, moment(m.LatestReply)
	if m.isReply() {
		t.root, wrote = m.Thread, moment(m.TS)
	}
	if !t.valid() {
		return
	}
	k := l.talks[t]
	k.thread, k.noted, k.wrote = t, true, later(k.wrote, wrote)
	k.last = later(k.last, k.wrote)
	l.talks[t] = k
}

// reread takes what was said in a thread.
func (l *look) reread(ctx context.Context, t talk) error {
	p, key := l.rooms[t.thread.channel], t.thread.key()
	heard, err := l.heard(ctx, t.thread)
	if err != nil {
		return err
	}
	from := l.from(key)
	upTo := from
	s := &stretch{channel: p.id, root: t.thread.root, oldest: tsOf(from), size: pageSize}
	for {
		got, err := l.app.next(ctx, s, l.turn)
		if err != nil {
			return fmt.Errorf("read thread %s: %w", key, err)
		}
		for _, m := range got {
			if at := moment(m.TS); at.After(from) {
				if err := l.take(ctx, p, m, heard); err != nil {
					return err
				}
				upTo = later(upTo, at)
			}
		}
		if s.cursor == "" {
			l.saw(key, later(upTo, t.wrote))
			return nil
		}
	}
}
