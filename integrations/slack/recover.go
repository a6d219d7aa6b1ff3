package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	api "github.com/slack-go/slack"

	"ship/session"
)

const (
	// recoverable is how far back anything is recovered. The keys of what was
	// handled are kept for longer, or it would be handled once more.
	recoverable = 3 * 24 * time.Hour
	// maxReadBack is how many threads one look reads, the newest first, and
	// maxSeen how many channels and threads are remembered.
	maxReadBack = 1000
	maxSeen     = 8192
)

var errNothingToRecover = errors.New("slack: nothing to take what was missed, or to look threads up in")

// Recovery finds what people said while no gateway listened: Slack repeats an
// event for some six minutes at most. It reads the channels that we are in and
// the threads that are sessions, and makes of each message the delivery that its
// event would have made, with the same content key: an event that comes after
// all is a duplicate, as is whatever was taken before. Edits, buttons, shortcuts
// and slash commands leave nothing to be read.
type Recovery struct {
	app     *app
	inbox   session.Inbox
	archive session.Archive
	vault   session.Vault
	// open: see ReceiverConfig.OpenThreads.
	open bool
	now  func() time.Time
	// turn is had by the one look that there is at a time. What is below belongs
	// to it.
	turn chan struct{}
	seen *lru.Cache[string, sight]
	// closed are the kinds of channels that a scope is missing for, and which was
	// said.
	closed map[string]bool
}

// sight is how far a channel or thread was read, and when.
type sight struct{ upTo, at time.Time }

func newRecovery(a *app, c Config) *Recovery {
	seen, _ := lru.New[string, sight](maxSeen) // refuses only what is not positive
	return &Recovery{
		app: a, inbox: c.Inbox, archive: c.Archive, vault: c.Vault, open: c.OpenThreads(), now: time.Now,
		turn: make(chan struct{}, 1), seen: seen, closed: map[string]bool{},
	}
}

// Recover looks through what was said since a moment, and returns how many
// requests it found that nobody had taken. May be called again and by several
// gateways at once; each request is taken once. What came before an error is
// found.
//
// It takes a call for each channel, and one for each thread in which somebody
// wrote, and waits behind whatever else wants to speak with Slack: of a busy
// workspace the first look takes minutes. Later ones know what was seen.
func (r *Recovery) Recover(ctx context.Context, since time.Time) (found int, err error) {
	if r.inbox == nil || r.archive == nil {
		return 0, errNothingToRecover
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	self, err := r.app.self(ctx)
	if err != nil {
		return 0, fmt.Errorf("slack: %w", err)
	}
	now := r.now()
	l := &look{Recovery: r, self: self, began: now, since: later(since, now.Add(-recoverable)), rooms: map[string]room{}, talks: map[thread]talk{}}
	err = l.all(ctx)
	if err = errors.Join(append(l.errs, err)...); err != nil {
		return l.found, fmt.Errorf("slack: %w", err)
	}
	return l.found, nil
}

// catchUp is Recover for when the way in was interrupted since a moment.
func (r *Recovery) catchUp(ctx context.Context, since time.Time) {
	found, err := r.Recover(ctx, since)
	switch {
	case err != nil && ctx.Err() == nil:
		r.app.log.WarnContext(ctx, "look for what was said while slack was out of reach", "since", since, "err", err)
	case found > 0:
		r.app.log.InfoContext(ctx, "took what was said while slack was out of reach", "since", since, "count", found)
	}
}

// look is one search for what was missed.
type look struct {
	*Recovery
	self         identity
	began, since time.Time
	// rooms are the channels, by their ids.
	rooms map[string]room
	// talks are the threads that may be worth reading.
	talks map[thread]talk
	found int
	// version of the mark that was found; cut: some threads were left out.
	version int64
	cut     bool
	// errs came of what was passed over.
	errs []error
}

// talk is a thread.
type talk struct {
	thread thread
	// last is when something happened there, as far as is known.
	last time.Time
	// busy: ship is at work, so nothing that is said there may wait for long.
	busy bool
	// noted: a message of the channel told when somebody wrote there last.
	noted bool
	wrote time.Time
}

// all looks everywhere. First come the channels, because that is where whoever
// has begun something hears nothing at all.
func (l *look) all(ctx context.Context) error {
	for _, prepare := range []func(context.Context) error{l.marked, l.awake, l.listed} {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.rooms)) {
		if err := l.pass(ctx, l.channel(ctx, l.rooms[id])); err != nil {
			return err
		}
	}
	for _, t := range l.worthReading(ctx) {
		if err := l.pass(ctx, l.reread(ctx, t)); err != nil {
			return err
		}
	}
	if len(l.errs) > 0 {
		return nil
	}
	return l.mark(ctx)
}

// pass passes over what Slack refuses for one place only, or what was not
// understood of that. When it cannot be reached, or wants nothing of us, the rest
// would not do better.
func (l *look) pass(ctx context.Context, err error) error {
	var refused api.SlackErrorResponse
	switch {
	case errors.Is(err, errAnswer), errors.Is(err, errLength):
	case err == nil, !errors.As(err, &refused), unwanted(err):
		return err
	}
	if context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	switch refused.Err {
	case "channel_not_found", "not_in_channel", "thread_not_found", "message_not_found":
	default:
		l.errs = append(l.errs, err)
	}
	return nil
}

// worthReading are the threads to read back, the newest first.
func (l *look) worthReading(ctx context.Context) []talk {
	var all []talk
	for _, t := range l.talks {
		if l.worth(t) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b talk) int {
		return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.thread.key(), b.thread.key()))
	})
	if len(all) > maxReadBack {
		l.app.log.WarnContext(ctx, "so many threads of slack are to be read for missed requests that only the newest are",
			"threads", len(all))
		all, l.cut = all[:maxReadBack], true
	}
	return all
}

// worth: somebody wrote in a thread since it was read, or may have.
func (l *look) worth(t talk) bool {
	key := t.thread.key()
	if t.noted {
		return t.wrote.After(l.from(key))
	}
	read, ok := l.seen.Get(key)
	return t.busy || !ok || !read.at.After(l.since)
}

// from is since when a channel or thread was not read.
func (l *look) from(key string) time.Time {
	read, _ := l.seen.Get(key)
	return later(l.since, read.upTo)
}

// saw notes how far a channel or thread was read.
func (l *look) saw(key string, upTo time.Time) { l.seen.Add(key, sight{upTo, l.began}) }

// take takes one message, if it is for us and was not taken before.
func (l *look) take(ctx context.Context, p room, m message, heard time.Time) error {
	a, ignored, err := said(l.event(p, m), l.open)
	if err != nil || ignored != "" || moot(a, heard) || l.acknowledged(m) {
		return nil // an event of it would lead to nothing either
	}
	receipt, err := l.inbox.Append(ctx, a.deliver("recovered:"+a.id))
	if err != nil {
		return fmt.Errorf("take what was missed: %w", err)
	}
	if !receipt.Duplicate && !receipt.Unknown {
		l.found++
	}
	return nil
}

// acknowledged: we reacted to it, so it was taken. Its keys say so as well, unless
// Redis was emptied or is another now: then nobody wants the requests of three
// days again.
func (l *look) acknowledged(m message) bool {
	for _, r := range m.Reactions {
		if r.Name == eyes && slices.Contains(r.Users, l.self.user) {
			return true
		}
	}
	return slices.Contains(m.ReplyUsers, l.self.user)
}

// event is what Slack would have told of a message.
func (l *look) event(p room, m message) envelope {
	return envelope{
		Type: typeEvent, Team: l.self.team, Enterprise: l.self.enterprise, Shared: p.shared,
		Authorizations: []authorization{{Team: l.self.team, User: l.self.user, Bot: true}},
		Event: event{
			Type: eventMessage, Subtype: m.Subtype, Channel: p.id, ChannelType: p.kind, TS: m.TS, Thread: m.Thread, EventTS: m.TS,
			User: m.User, UserTeam: m.UserTeam, Team: m.Team, Bot: m.Bot, App: m.App, Hidden: m.Hidden, Edited: m.Edited, Text: m.Text,
		},
	}
}

// moot: something was asked after it, up to which the agent has read along. To
// be asked for work is never moot if we were mentioned; a stop would now end
// what was wanted after it.
func moot(a act, heard time.Time) bool {
	work := a.command.Verb == "" || a.command.Verb == session.Instruct || a.command.Verb == session.Finish
	return !a.at.After(heard) && (a.known || !work)
}

// turn makes a request when its turn has come, however long that takes.
func (l *look) turn(ctx context.Context, method string, request func(context.Context) error) error {
	for {
		err := l.app.call(ctx, Moving, call{team: l.self.team, method: method}, request)
		var early *notYet
		if !errors.As(err, &early) {
			return err
		}
		if err := session.Sleep(ctx, early.wait); err != nil {
			return err
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
