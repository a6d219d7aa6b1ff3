package slack

import (
	"context"
	"fmt"
	"strings"

	api "github.com/slack-go/slack"

	"ship/bot"
	"ship/session"
)

// maxRooted of what was asked by a slash command is shown in the message that
// the thread begins with, in bytes.
const maxRooted = 2 << 10

const sayUninvited = "I cannot write in this channel, so I could not begin with what you asked. Invite me to it, `/invite` and my name, and ask me again."

// root begins the thread of a slash command: it posts the message that the
// thread hangs on, and hands the request over to the session of the thread.
// There it is admitted. Done twice, the message is found again, and the request
// is known by its keys.
func (w *work) root(ctx context.Context, r session.Request) (session.Admission, error) {
	self, err := w.app.self(ctx)
	if err != nil {
		return session.Admission{}, err
	}
	if self.team != w.thread.team { // in a channel that is shared, our token might post it
		return session.Admission{Refusal: sayElsewhere, Stranger: true, By: r.By}, nil
	}
	ts, err := w.post(ctx, Asking, w.effect.ID, rootOf(r))
	if uninvited(err) {
		return w.uninvited(ctx, r, err)
	}
	if err != nil {
		return session.Admission{}, fmt.Errorf("begin a thread: %w", err)
	}
	d, err := root(r, ts)
	if err != nil {
		return session.Admission{}, err
	}
	if _, err := w.inbox.Append(ctx, d); err != nil {
		return session.Admission{}, fmt.Errorf("hand the request over to its thread: %w", err)
	}
	return session.Admission{Void: true}, nil
}

// rootOf shows who asks what. The words are theirs and do nothing: nobody is
// called by them.
func rootOf(r session.Request) post {
	text := bot.Cut(bot.Neutralise(strings.TrimSpace(r.Text)), maxRooted)
	said := mrkdwn(text, maxSection)[0]
	head := "Somebody asks:"
	if user, foreign, err := parseLogin(r.By.Login); err == nil && foreign == "" {
		head = "<@" + user + "> asks:"
	}
	all := head + "\n" + said
	if length(all) > maxSection {
		return post{text: head, blocks: []api.Block{section(head), section(said)}}
	}
	return post{text: all, blocks: []api.Block{section(all)}}
}

// uninvited: we are not where it was asked.
func uninvited(err error) bool {
	switch code(err) {
	case "not_in_channel", "channel_not_found":
		return true
	}
	return false
}

// uninvited tells whoever asked, and nobody else, why nothing comes of it. If
// Slack does not let us do that either, the answer to the command has said it.
// Done twice, they may read it twice.
func (w *work) uninvited(ctx context.Context, r session.Request, cause error) (session.Admission, error) {
	err := w.whisper(ctx, r.Ref, sayUninvited)
	if ctx.Err() != nil {
		return session.Admission{}, err
	}
	if err != nil {
		w.app.log.WarnContext(ctx, "somebody could not be told that nothing comes of their command", "err", err)
		return session.Admission{}, &session.Problem{Say: sayUninvited, Err: fmt.Errorf("begin a thread: %w", cause)}
	}
	return session.Admission{Void: true}, nil
}
