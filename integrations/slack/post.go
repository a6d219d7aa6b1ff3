package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	api "github.com/slack-go/slack"

	"ship/session"
)

// eventType marks the metadata of messages of ours.
const eventType = "ship_report"

// arrival is how long a message is given that may still be on its way to where
// it can be read.
const arrival = 3 * time.Second

var (
	// errNoThread: the message that the thread began with is deleted.
	errNoThread = errors.New("the thread is not there any more")
	// errNoName: Slack says that a message was posted, and not which.
	errNoName = errors.New("slack did not say what was posted")
)

// metadata carries the id under which a message was decided.
func metadata(id string) string {
	raw, _ := json.Marshal(api.SlackMetadata{EventType: eventType, EventPayload: map[string]any{"outbox_id": id}}) // strings can be encoded
	return string(raw)
}

// form is a message of a channel as Slack takes it.
func (p post) form(channel string) url.Values {
	form := url.Values{"channel": {channel}, "text": {p.text}}
	if len(p.blocks) > 0 {
		form.Set("blocks", encoded(p.blocks))
	}
	return form
}

// post puts a message into the thread, once per id, and returns what names it.
// Performed twice: when it may have been posted before, or when it cannot be
// known whether it just was, the thread is read for the id.
func (w *work) post(ctx context.Context, p Priority, id string, m post) (ts string, err error) {
	return w.postAll(ctx, p, id, []post{m})
}

// postAll posts messages one after the other, under id, id/2, id/3 and so on,
// and returns what names the first. Performed twice: see post. What was posted
// before it failed in the middle is not posted again.
func (w *work) postAll(ctx context.Context, p Priority, id string, all []post) (first string, err error) {
	there := map[string]string{}
	if w.job.Repeat {
		if there, err = w.posted(ctx, p); err != nil {
			return "", fmt.Errorf("look whether it was posted before: %w", err)
		}
	}
	for i, m := range all {
		id := numbered(id, i+1)
		ts := there[id]
		if ts == "" {
			if ts, err = w.put(ctx, p, id, m); err != nil {
				return "", fmt.Errorf("message %d of %d: %w", i+1, len(all), err)
			}
		}
		if i == 0 {
			first = ts
		}
	}
	return first, nil
}

// numbered is the id of the nth message that an effect leads to.
func numbered(id string, n int) string {
	if n == 1 {
		return id
	}
	return id + "/" + strconv.Itoa(n)
}

// put posts a message that is not there. If that fails in a way in which it may
// be there all the same, a look tells.
func (w *work) put(ctx context.Context, p Priority, id string, m post) (ts string, err error) {
	ts, err = w.offer(ctx, p, id, m)
	if err == nil || ctx.Err() != nil || !unsure(err) {
		return ts, err
	}
	there, lookErr := w.posted(ctx, p)
	if lookErr != nil {
		return "", fmt.Errorf("look whether it was posted all the same (%v): %w", err, lookErr)
	}
	if ts := there[id]; ts != "" {
		return ts, nil
	}
	return "", &session.Problem{Say: sayTrouble, Err: err, Again: true, After: arrival}
}

// offer posts a message, and without blocks if Slack does not take those.
func (w *work) offer(ctx context.Context, p Priority, id string, m post) (ts string, err error) {
	ts, err = w.postOnce(ctx, p, id, m)
	if !badBlocks(err) || len(m.blocks) == 0 {
		return ts, err
	}
	w.simplified(ctx, id, err)
	return w.postOnce(ctx, p, id, simple(m))
}

func (w *work) simplified(ctx context.Context, id string, err error) {
	w.app.log.WarnContext(ctx, "slack does not take the blocks of a message, so it is sent as text",
		"session", string(w.job.State.ID), "effect", id, "err", detailed(err))
}

// postOnce makes the one request that posts a message.
func (w *work) postOnce(ctx context.Context, p Priority, id string, m post) (ts string, err error) {
	form := m.form(w.thread.channel)
	form.Set("metadata", metadata(id))
	form.Set("unfurl_links", "false")
	form.Set("unfurl_media", "false")
	if !w.thread.pending() {
		form.Set("thread_ts", w.thread.root)
	}
	const method = "chat.postMessage"
	var made answer
	err = w.app.call(ctx, p, w.call(method), func(ctx context.Context) (err error) {
		made, err = w.app.ask(ctx, method, form)
		return err
	})
	switch {
	case err != nil:
		return "", err
	case !validTS.MatchString(made.TS):
		return "", errNoName
	case made.Message.Thread == "" && !w.thread.pending():
		return made.TS, w.stray(ctx, p, made.TS)
	}
	return made.TS, nil
}

// stray: Slack posts a reply into the channel, without a word, if the message
// that the thread began with is deleted, and then names no thread in its answer.
// Nobody there waits for it, so it is taken back.
func (w *work) stray(ctx context.Context, p Priority, ts string) error {
	_, err := w.replies(ctx, p, ts, 1)
	if code(err) != "thread_not_found" {
		return err // it is where it belongs, whatever the answer says
	}
	if err := w.remove(ctx, p, ts); err != nil {
		w.app.log.WarnContext(ctx, "a message that went into the channel was left there", "session", string(w.job.State.ID), "err", err)
	}
	return errNoThread
}

// update changes a message of ours. Progress is shown now or not at all, which
// is *notYet. Of one that somebody deleted Slack says message_not_found, and of
// one that it keeps as it is cant_update_message or edit_window_closed: see
// code. Performed twice, it is the same.
func (w *work) update(ctx context.Context, p Priority, ts string, m post) error {
	err := w.updateOnce(ctx, p, ts, m)
	if badBlocks(err) && len(m.blocks) > 0 {
		w.simplified(ctx, w.effect.ID, err)
		err = w.updateOnce(ctx, p, ts, simple(m))
	}
	return err
}

// updateOnce makes the one request that changes a message. Unless it is told not
// to, Slack would read more into the text than when that was posted.
func (w *work) updateOnce(ctx context.Context, p Priority, ts string, m post) error {
	turn := w.app.call
	if p == Moving {
		turn = w.app.try
	}
	form := m.form(w.thread.channel)
	form.Set("ts", ts)
	form.Set("parse", "none")
	if len(m.blocks) == 0 {
		form.Set("blocks", "[]")
	}
	const method = "chat.update"
	return turn(ctx, p, w.call(method), func(ctx context.Context) error {
		_, err := w.app.ask(ctx, method, form)
		return err
	})
}

// remove deletes a message of ours. Performed twice, it is gone.
func (w *work) remove(ctx context.Context, p Priority, ts string) error {
	err := w.app.call(ctx, p, w.call("chat.delete"), func(ctx context.Context) error {
		_, _, err := w.app.client.DeleteMessageContext(ctx, w.thread.channel, ts)
		return err
	})
	switch code(err) {
	case "message_not_found", "cant_delete_message":
		return nil
	}
	return err
}
