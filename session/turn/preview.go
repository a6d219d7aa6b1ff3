package turn

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
	"ship/sandbox/preview"
	"ship/session"
)

// previewPath is the file in the box by which the agent says which port it
// serves. A file, as people want to look while the agent still works, and as it
// is there for whoever takes the session over.
const previewPath = sandbox.RunDir + "/preview"

const (
	// previewEvery is how often that file is looked at: a box has no signal for
	// its change.
	previewEvery = 2 * time.Second
	// previewWaits is how long a port that was named may take to answer.
	previewWaits = time.Minute
)

// showing tells the agent how to let people look. They get the link from us: one
// that it made up would lead nowhere.
const showing = `- If people would want to see the result in a browser, you may start the project's development server for them: detached (setsid nohup … >/tmp/server.log 2>&1 &), on 127.0.0.1, with a port above 1023. When it answers, write the port into a file: echo 3000 > ` + previewPath + `. They are given a link to it, which leads below a path; paths that the project builds should be relative where it has an option for that. Leave it running when you end, and empty the file if you end it. Do not write a link yourself.
`

// exhibit is what a box shows to people while one leg of a turn runs. It
// belongs to one goroutine at a time.
type exhibit struct {
	worker *Worker
	job    session.Job
	box    sandbox.Box
	tell   func(session.Preview)
	// named is the port that the file named last, and since when it does.
	named int
	since time.Time
	// told is what was told; nil: nothing yet.
	told *session.Preview
}

// watch looks until ctx ends.
func (e *exhibit) watch(ctx context.Context) {
	tick := time.NewTicker(previewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			e.look(ctx, time.Now())
		}
	}
}

// settle looks a last time, and waits for a server that was only just named.
func (e *exhibit) settle(ctx context.Context) {
	tick := time.NewTicker(previewEvery / 4)
	defer tick.Stop()
	for e.look(ctx, time.Now()); e.undecided(time.Now()); e.look(ctx, time.Now()) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// undecided: a port is named, and may still come to answer.
func (e *exhibit) undecided(now time.Time) bool {
	return e.named != 0 && (e.told == nil || e.told.Port != e.named) && now.Sub(e.since) < previewWaits
}

// look takes the file into account. What cannot be read now is read later.
func (e *exhibit) look(ctx context.Context, now time.Time) {
	port, err := e.port(ctx)
	if err != nil {
		return
	}
	if port != e.named {
		e.named, e.since = port, now
	}
	switch {
	case port != 0 && e.told != nil && e.told.Port == port:
		e.renew(now)
	case e.undecided(now):
		if preview.Answers(ctx, e.box, port) {
			e.open(port, now)
		}
	default:
		e.close()
	}
}

// port is the one that the file names; zero: none that may be shown.
func (e *exhibit) port(ctx context.Context) (int, error) {
	text, err := e.box.ReadFrom(ctx, previewPath, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return portIn(text), nil
}

func portIn(text []byte) int {
	port, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !preview.Allowed(port) {
		return 0
	}
	return port
}

// open tells of a server that answers. One that did before, in an earlier turn
// of the same box, has done so all the time.
func (e *exhibit) open(port int, now time.Time) {
	p := session.Preview{Port: port, Since: byStore(e.job, now)}
	if before := e.job.State.Preview; before != nil && before.Port == port {
		p.Since = before.Since
	}
	e.sign(p, now)
}

// renew moves the end of a link whose time is half over: the box, too, lives on
// while its session works.
func (e *exhibit) renew(now time.Time) {
	if e.told.Until.Sub(byStore(e.job, now)) < e.lasts()/2 {
		e.sign(*e.told, now)
	}
}

// lasts is how long a link is good for: no longer than a box is kept that comes
// to rest right now.
func (e *exhibit) lasts() time.Duration {
	if kept := e.worker.Life.IdleDestroy; kept > 0 {
		return min(kept, preview.Longest)
	}
	return preview.Longest
}

func (e *exhibit) sign(p session.Preview, now time.Time) {
	until := now.Add(e.lasts())
	target := preview.Target{Session: string(e.job.State.ID), Box: e.job.State.Box, Port: p.Port}
	link, err := e.worker.Previews.URL(target, now, until)
	if err != nil {
		e.worker.Log.Warn("sign a preview's link", "session", target.Session, "err", err)
		return
	}
	p.URL, p.Until = link, byStore(e.job, until)
	e.say(p)
}

// close tells that nothing is shown, if anybody may think otherwise.
func (e *exhibit) close() {
	if e.told != nil && e.told.Port == 0 || e.told == nil && e.job.State.Preview == nil {
		return
	}
	e.say(session.Preview{})
}

func (e *exhibit) say(p session.Preview) {
	e.told = &p
	e.tell(p)
}

// exhibit watches what the box shows. done ends that, with a last look if the
// work was completed, and returns what there was to tell.
func (w *Worker) exhibit(ctx context.Context, box sandbox.Box, t *talk) (done func(completed bool) *session.Preview) {
	if w.Previews == nil {
		return func(bool) *session.Preview { return nil }
	}
	e := &exhibit{worker: w, job: t.job, box: box, tell: t.show}
	watching, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); e.watch(watching) }()
	return func(completed bool) *session.Preview {
		cancel(nil)
		<-watched
		if completed {
			e.settle(ctx)
		}
		return e.told
	}
}
