package github

import (
	"context"
	"strconv"
	"time"

	"ship/bot"
	"ship/session"
)

// report puts the state's view into the session's one status comment in this
// thread. It is found by its stored id, else by its marker; where there are
// two, after a crash, the older one is it.
func (w *work) report(ctx context.Context) (session.Performed, error) {
	view := session.ViewOf(w.job.State)
	body := compose(statusMarker(w.job.State.ID), bot.Markdown(view))
	done := session.Performed{Shown: view.Digest()}
	var err error
	done.Ref, err = w.overwrite(ctx, w.shownIn(), body)
	return done, err
}

// shownIn returns the id of the thread's status comment, as far as is known.
func (w *work) shownIn() string {
	for _, v := range w.job.State.Threads {
		if v.Platform == Platform && v.Key == w.thread.key() {
			return v.Ref
		}
	}
	return ""
}

func (w *work) overwrite(ctx context.Context, known, body string) (string, error) {
	at := w.conversation()
	if _, ok := parseID(known); ok {
		if err := w.edit(ctx, at, known, body); !gone(err) {
			return known, err
		}
	}
	status, err := w.find(ctx, at, statusMarker(w.job.State.ID), time.Time{})
	if err != nil {
		return "", err
	}
	if status != nil {
		id := formatID(status.ID)
		return id, w.edit(ctx, at, id, body)
	}
	made, err := w.post(ctx, at, body)
	return formatID(made.ID), err
}

func formatID(id int64) string { return strconv.FormatInt(id, 10) }
