package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ship/bot"
	"ship/session"
)

// clockMargin allows for GitHub's clock and ours to differ when only what was
// written since some moment is looked through.
const clockMargin = time.Hour

// comment is one comment, in a conversation or in a diff. The client library
// has no field for the app that wrote it.
type comment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
	App *struct {
		ID int64 `json:"id"`
	} `json:"performed_via_github_app"`
	CreatedAt time.Time `json:"created_at"`
	Path      string    `json:"path"`
	Line      int       `json:"line"`
	InReplyTo int64     `json:"in_reply_to_id"`
}

// place is where comments stand: a conversation, or the diff of a pull
// request.
type place struct {
	// list is the address of all, one that of a single one without its id, and
	// create where a new one is posted.
	list, one, create string
}

func (w *work) conversation() place {
	all := w.path("issues/%d/comments", w.thread.number)
	return place{list: all, one: w.path("issues/comments/"), create: all}
}

// diff is a thread in the diff, named by its first comment.
func (w *work) diff(root int64) place {
	all := w.path("pulls/%d/comments", w.thread.number)
	return place{list: all, one: w.path("pulls/comments/"), create: fmt.Sprintf("%s/%d/replies", all, root)}
}

// mine tells whether our app wrote a comment. Its text proves nothing.
func (w *work) mine(ctx context.Context, c comment) (bool, error) {
	if c.App != nil {
		return c.App.ID == w.app.id, nil
	}
	login, err := w.app.bot(ctx)
	return c.User.Login == login, err
}

// own returns the comments that we wrote and that begin with a marker,
// oldest first. A time that is not zero bounds how far back is looked.
func (w *work) own(ctx context.Context, at place, since time.Time) ([]comment, error) {
	path := at.list
	if !since.IsZero() {
		path += "?since=" + url.QueryEscape(since.Add(-clockMargin).UTC().Format(time.RFC3339))
	}
	var candidates []comment
	err := pages(ctx, w.in, path, func(c comment) bool {
		if ours(c.Body) {
			candidates = append(candidates, c)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return w.keepMine(ctx, candidates)
}

func (w *work) keepMine(ctx context.Context, candidates []comment) ([]comment, error) {
	var found []comment
	for _, c := range candidates {
		mine, err := w.mine(ctx, c)
		if err != nil {
			return nil, err
		}
		if mine {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b comment) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// find returns the first comment of ours that bears a marker, or nil.
func (w *work) find(ctx context.Context, at place, marker string, since time.Time) (*comment, error) {
	all, err := w.own(ctx, at, since)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if bears(c.Body, marker) {
			return &c, nil
		}
	}
	return nil, nil
}

func (w *work) post(ctx context.Context, at place, body string) (comment, error) {
	var made comment
	err := w.in.create(ctx, at.create, map[string]any{"body": body}, &made)
	return made, err
}

func (w *work) edit(ctx context.Context, at place, id, body string) error {
	_, err := w.in.call(ctx, http.MethodPatch, at.one+id, map[string]any{"body": body}, nil)
	return err
}

// remove deletes a comment. One that is gone is as good as removed.
func (w *work) remove(ctx context.Context, at place, id string) error {
	_, err := w.in.call(ctx, http.MethodDelete, at.one+id, nil, nil)
	if gone(err) {
		return nil
	}
	return err
}

// request returns the ref of what was asked, wherever the effect has it. What
// cannot be read is answered in the conversation.
func (w *work) request() ref {
	s := w.effect.Ref
	if s == "" && w.effect.Request != nil {
		s = w.effect.Request.Ref
	}
	r, err := parseRef(s)
	if err != nil {
		return ref{kind: refThread}
	}
	return r
}

// acknowledge shows 👀 on what was asked. GitHub keeps one reaction of a kind
// per person, so a repeat changes nothing.
func (w *work) acknowledge(ctx context.Context) error {
	err := w.react(ctx, w.request())
	if gone(err) { // it was deleted in the meantime: nothing to look at
		return nil
	}
	return err
}

func (w *work) react(ctx context.Context, r ref) error {
	var path string
	switch r.kind {
	case refComment:
		path = w.path("issues/comments/%d/reactions", r.id)
	case refInline:
		path = w.path("pulls/comments/%d/reactions", r.id)
	case refReview:
		return w.reactToReview(ctx, r)
	case refCheck: // a button has no place for a reaction; the check run moves
		return nil
	default:
		path = w.path("issues/%d/reactions", w.thread.number)
	}
	_, err := w.in.call(ctx, http.MethodPost, path, map[string]any{"content": "eyes"}, nil)
	return err
}

// question is the text of a question, with what it can be answered with.
func question(e session.Effect) string {
	text := e.Text + "\n"
	for _, c := range e.Choices {
		text += "\n- `" + harmless(c.Value) + "`"
		if c.Label != "" && c.Label != c.Value {
			text += " " + oneLine(harmless(c.Label))
		}
	}
	return strings.TrimSpace(text)
}

// say posts a text: under the line of the diff where it was asked, else in the
// conversation.
func (w *work) say(ctx context.Context, text string) (session.Performed, error) {
	body := compose(sayMarker(w.effect.ID), bot.Neutralise(text))
	r := w.request()
	if r.kind != refInline {
		return w.sayAt(ctx, w.conversation(), body)
	}
	done, err := w.sayAt(ctx, w.diff(r.root), body)
	if gone(err) || refused(err) == http.StatusUnprocessableEntity { // the thread in the diff was deleted
		return w.sayAt(ctx, w.conversation(), body)
	}
	return done, err
}

func (w *work) sayAt(ctx context.Context, at place, body string) (session.Performed, error) {
	if w.job.Repeat {
		said, err := w.find(ctx, at, sayMarker(w.effect.ID), w.effect.Since)
		if err != nil {
			return session.Performed{}, err
		}
		if said != nil {
			return session.Performed{Ref: formatID(said.ID)}, nil
		}
	}
	made, err := w.post(ctx, at, body)
	if err != nil {
		return session.Performed{}, err
	}
	return session.Performed{Ref: formatID(made.ID)}, nil
}
