package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	api "github.com/slack-go/slack"
)

// pageSize is how many things are asked for at once. Slack recommends no more.
const pageSize = 200

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
	params := api.GetConversationsForUserParameters{Types: []string{types}, ExcludeArchived: true, Limit: pageSize}
	for {
		var got []api.Channel
		err := l.insist(ctx, call{team: l.self.team, method: "users.conversations"}, func(ctx context.Context) (err error) {
			got, params.Cursor, err = l.app.client.GetConversationsForUserContext(ctx, &params)
			return err
		})
		if err != nil {
			return err
		}
		for _, c := range got {
			if validID.MatchString(c.ID) {
				l.rooms[c.ID] = room{c.ID, kind, c.IsExtShared}
			}
		}
		if params.Cursor == "" {
			return nil
		}
	}
}

// lacking: the token has not the scope for that.
func lacking(err error) bool {
	var refused api.SlackErrorResponse
	return errors.As(err, &refused) && refused.Err == "missing_scope"
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
		at := moment(m.Timestamp)
		l.note(p, m)
		if isReply(m) || !at.After(from) {
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
func (l *look) history(ctx context.Context, p room, from time.Time) ([]api.Message, error) {
	params := api.GetConversationHistoryParameters{
		ChannelID: p.id, Oldest: stamp(l.began.Add(-recoverable)), Inclusive: true, Limit: pageSize,
	}
	var all []api.Message
	for {
		var got *api.GetConversationHistoryResponse
		err := l.insist(ctx, call{team: l.self.team, method: "conversations.history"}, func(ctx context.Context) (err error) {
			got, err = l.app.client.GetConversationHistoryContext(ctx, &params)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, got.Messages...)
		params.Cursor = got.ResponseMetaData.NextCursor
		reached := len(got.Messages) > 0 && moment(got.Messages[len(got.Messages)-1].Timestamp).Before(from)
		if reached || params.Cursor == "" {
			return all, nil
		}
	}
}

func isReply(m api.Message) bool { return m.ThreadTimestamp != "" && m.ThreadTimestamp != m.Timestamp }

// note notes the thread of a message, and whether somebody wrote there. A reply
// is in a channel if it was shown to all.
func (l *look) note(p room, m api.Message) {
	t, wrote := thread{l.self.team, p.id, m.Timestamp}, moment(m.LatestReply)
	if isReply(m) {
		t.root, wrote = m.ThreadTimestamp, moment(m.Timestamp)
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
	params := api.GetConversationRepliesParameters{
		ChannelID: p.id, Timestamp: t.thread.root, Oldest: stamp(from), Inclusive: true, Limit: pageSize,
	}
	for {
		var got []api.Message
		err := l.insist(ctx, call{team: l.self.team, method: "conversations.replies"}, func(ctx context.Context) (err error) {
			got, _, params.Cursor, err = l.app.client.GetConversationRepliesContext(ctx, &params)
			return err
		})
		if err != nil {
			return fmt.Errorf("read thread %s: %w", key, err)
		}
		for _, m := range got {
			if at := moment(m.Timestamp); at.After(from) {
				if err := l.take(ctx, p, m, heard); err != nil {
					return err
				}
				upTo = later(upTo, at)
			}
		}
		if params.Cursor == "" {
			l.saw(key, later(upTo, t.wrote))
			return nil
		}
	}
}

// stamp is a moment as Slack writes it.
func stamp(at time.Time) string {
	return strconv.FormatInt(at.Unix(), 10) + fmt.Sprintf(".%06d", at.Nanosecond()/1000)
}
