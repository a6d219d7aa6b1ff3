package linear

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Khan/genqlient/graphql"

	"ship/bot"
	ql "ship/graphql/linear"
	"ship/session"
)

// costStates is what ReadStartedStates costs, in points.
const costStates = 72

// care shows that work has begun: on the issue, and, when somebody asked
// elsewhere, in the conversation. It looks at the issue before it changes
// anything, so a repeat finds nothing left to do. A turn that is stopped by now
// is not shown as begun: the issue may have been taken away from us.
func (w *work) care(ctx context.Context) error {
	if t := w.job.State.Turn; t == nil || t.Stopping != "" || t.Stage == session.Ended {
		return nil
	}
	if err := w.take(ctx); err != nil {
		return err
	}
	text := w.askedElsewhere()
	if text == "" {
		return nil
	}
	return w.create(ctx, utterance{id: w.effect.ID, content: ql.Thought(text), priority: Thinking})
}

// take moves the issue to where its team has what is worked on, and puts us down
// as who does. Work goes on where Linear does not let us.
func (w *work) take(ctx context.Context) error {
	i, err := w.issue(ctx)
	if err != nil || i == nil {
		return err
	}
	for _, step := range []func(context.Context, *ql.Issue) error{w.start, w.sign} {
		err := step(ctx, i)
		if err == nil {
			continue
		}
		if p := classify(err); ctx.Err() != nil || p.Again || p.Gone {
			return err
		}
		w.app.log.WarnContext(ctx, "an issue was not taken care of", "issue", i.Identifier, "err", err)
	}
	return nil
}

// start moves an issue that nobody has begun with into the first of its team's
// states for what has begun. What an automation put up for triage stays there:
// people decide about that.
func (w *work) start(ctx context.Context, i *ql.Issue) error {
	if i.State.Type == "started" || finished(i.State) || i.State.Type == "triage" && w.automatic() {
		return nil
	}
	to, err := w.firstStarted(ctx, i.Team.Id)
	if err != nil || to == "" {
		return err
	}
	err = w.call(ctx, Thinking, costWrite, func(c graphql.Client) error {
		_, err := ql.MoveIssue(ctx, c, i.Id, to)
		return err
	})
	if err != nil {
		return fmt.Errorf("move the issue: %w", err)
	}
	return nil
}

// firstStarted is the state of a team in which work begins; empty when it has
// none.
func (w *work) firstStarted(ctx context.Context, team string) (string, error) {
	var got *ql.ReadStartedStatesResponse
	err := w.call(ctx, Thinking, costStates, func(c graphql.Client) (err error) {
		got, err = ql.ReadStartedStates(ctx, c, team)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("look for the state to move the issue to: %w", err)
	}
	states := got.Team.States.Nodes
	if len(states) == 0 {
		return "", nil
	}
	return slices.MinFunc(states, func(a, b ql.State) int { return cmp.Compare(a.Position, b.Position) }).Id, nil
}

// sign puts us down as the issue's delegate where it has none and was spoken of
// here. Who took the issue away from us, and goes on elsewhere, has a reason.
func (w *work) sign(ctx context.Context, i *ql.Issue) error {
	if i.Delegate != nil || !w.askedHere() {
		return nil
	}
	self, err := w.viewer(ctx)
	if err != nil {
		return err
	}
	err = w.call(ctx, Thinking, costWrite, func(c graphql.Client) error {
		_, err := ql.DelegateIssue(ctx, c, i.Id, self)
		return err
	})
	if err != nil {
		return fmt.Errorf("put us down as the delegate: %w", err)
	}
	return nil
}

// asked are the requests of the turn that begins.
func (w *work) asked() []session.Request { return w.job.State.Turn.Requests }

func (w *work) askedHere() bool { return slices.ContainsFunc(w.asked(), w.here) }

// automatic: nobody in person asked for the turn.
func (w *work) automatic() bool {
	asked := w.asked()
	return len(asked) > 0 && asked[0].By.Name == nobody
}

// askedElsewhere says who asked for the turn, and where, when that was not in
// this thread; empty otherwise. What they wrote is not repeated: not everybody
// here may read it there.
func (w *work) askedElsewhere() string {
	asked, pr := w.asked(), w.job.State.PR
	if len(asked) == 0 || w.askedHere() {
		return ""
	}
	where := "elsewhere"
	if pr != nil {
		where = fmt.Sprintf("on the pull request [#%d](%s)", pr.Number, pr.URL)
	}
	return fmt.Sprintf("%s asked for something %s, so I am at work again.", shownName(asked[0].By.Login), where)
}

// shownName is a name as code, in which nothing has an effect.
func shownName(login string) string {
	name := strings.ReplaceAll(strings.Join(strings.Fields(bot.Prefix(login, maxName)), " "), "`", "")
	return "`" + bot.Neutralise(cmp.Or(name, somebody)) + "`"
}
