package linear

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"

	"ship/bot"
	ql "ship/graphql/linear"
)

const (
	// maxLinks is how many issues one text may name, and maxAbout how much of each
	// the agent gets to read, in bytes: together they leave room for the rest.
	maxLinks = 3
	maxAbout = 8 << 10
	// linking may take so long: somebody waits for the work to begin.
	linking = 20 * time.Second
	// costReader is what ReadReader costs, in points.
	costReader = 9
)

// errLinking is the cause of a look-up that took too long.
var errLinking = errors.New("linear took too long to tell of the issues that were named")

// Linker finds the issues that a text on another platform names. It only reads.
type Linker struct{ app *app }

// Link returns the issues behind the addresses in a text, three at most, of the
// workspaces that ship is installed in; nothing for what ship may not see there.
// An issue is described only to those who can read it themselves: active users
// of the workspace by their e-mail address, and members of the team unless the
// team is open to them. What was found before an error is returned with it. May
// be called again.
func (l *Linker) Link(ctx context.Context, text string, who bot.Asker) ([]bot.Link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, linking, errLinking)
	defer cancel()
	var found []bot.Link
	var errs []error
	for _, n := range namedIn(text) {
		link, err := l.link(ctx, n, who)
		if err != nil {
			errs = append(errs, fmt.Errorf("linear: look up the issue %s that was named: %w", n.key, err))
		}
		known := func(k bot.Link) bool { return k.Thread == link.Thread }
		if link.Thread.Key != "" && !slices.ContainsFunc(found, known) { // an issue that was moved has two keys
			found = append(found, link)
		}
	}
	return found, errors.Join(errs...)
}

// link looks one issue up; an empty thread: there is none for us.
func (l *Linker) link(ctx context.Context, n named, who bot.Asker) (bot.Link, error) {
	at, err := l.workspace(ctx, n.workspace)
	if err != nil || at == nil {
		return bot.Link{}, err
	}
	w := &work{Performer: &Performer{app: l.app}, workspace: at, thread: thread{organization: at.id, issue: n.key}}
	i, err := w.issue(ctx)
	if hidden(err) {
		return bot.Link{}, nil
	}
	if err != nil {
		return bot.Link{}, err
	}
	w.thread.issue = i.Id
	if !w.thread.silent() {
		return bot.Link{}, fmt.Errorf("issue %q: %w", i.Id, errKey)
	}
	link := bot.Link{Thread: w.thread.session()}
	open, err := w.open(ctx, who, i)
	if err != nil || !open {
		return link, err
	}
	link.About, err = w.about(ctx, i)
	return link, err
}

// workspace finds the one with an address; nil when we are not in it. Each is
// asked for its address once.
func (l *Linker) workspace(ctx context.Context, urlKey string) (*workspace, error) {
	all, err := l.app.all(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, w := range all {
		who, err := w.identity(ctx, Thinking)
		switch {
		case errors.Is(err, ErrNotInstalled), errors.Is(err, ErrReinstall): // it is not ours any more
		case err != nil:
			errs = append(errs, fmt.Errorf("workspace %s: %w", w.id, err))
		case strings.EqualFold(who.urlKey, urlKey):
			return w, nil
		}
	}
	return nil, errors.Join(errs...)
}

// hidden: Linear has no such issue for us, and will not whenever it is asked.
func hidden(err error) bool {
	v, ok := verdictOf(err)
	return ok && (v.gone() || v.refused() || v.forbids())
}

// open tells whether somebody on another platform may read an issue. Guests of a
// workspace see only the teams that they are in.
func (w *work) open(ctx context.Context, who bot.Asker, i *ql.Issue) (bool, error) {
	if who.Email == "" {
		return false, nil
	}
	var got *ql.ReadReaderResponse
	err := w.call(ctx, Thinking, costReader, func(c graphql.Client) (err error) {
		got, err = ql.ReadReader(ctx, c, who.Email, i.Team.Id)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("ask who may read it: %w", err)
	}
	u := slices.IndexFunc(got.Users.Nodes, func(u ql.User) bool { return u.Active && !u.App && strings.EqualFold(u.Email, who.Email) })
	if u < 0 {
		return false, nil
	}
	reader, team := got.Users.Nodes[u], got.Team
	if team.Visibility == ql.TeamVisibilityPublic && !reader.Guest {
		return true, nil
	}
	return slices.ContainsFunc(team.Members.Nodes, func(m ql.Member) bool { return m.Id == reader.Id }), nil
}

// about describes the issue with the newest that was said on it.
func (w *work) about(ctx context.Context, i *ql.Issue) (string, error) {
	all, err := w.talk(ctx, time.Now(), "")
	if err != nil {
		return "", err
	}
	remarks, _ := parted(all, time.Time{})
	return described(i, remarks, maxAbout), nil
}
