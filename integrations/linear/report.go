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
	"ship/session"
)

// silence is how long nothing is told of a turn that runs. Linear takes an agent
// for stale after half an hour.
const silence = 9 * time.Minute

// heartbeatAfter is a little less, for the clock of whoever schedules reports is
// not ours.
const heartbeatAfter = silence - 30*time.Second

// Pace is how often a turn that has been running for a while is reported on. The
// longer it takes, the less people watch: an hour makes some seventy reports, of
// two requests at most while the agent works.
func Pace(running time.Duration) session.Pace {
	p := session.Pace{Every: 75 * time.Second, Silence: silence}
	switch {
	case running < 2*time.Minute:
		p.Every = 10 * time.Second
	case running < 10*time.Minute:
		p.Every = 30 * time.Second
	}
	return p
}

// report brings what a session shows beside its activities up to date, and
// tells the newest step in an activity that makes way for the next. What was
// shown already is not shown again; what there is no room for now is left to
// the next report, for that says more. Performed twice, it shows the same.
type report struct {
	*work
	view session.View
	// has is what is shown by now.
	has shown
	now time.Time
}

// report shows how far the turn is. After its end there is no activity, since
// the answer is to be the last. What there is no room for then must be shown
// later, so it is owned up to, unless somebody waits for the next turn.
func (w *work) report(ctx context.Context) (session.Performed, error) {
	r := &report{work: w, view: session.ViewOf(w.job.State), has: w.remembered(), now: time.Now()}
	digest := r.view.Digest()
	if err := r.update(ctx); noRoom(err) && ctx.Err() == nil {
		if r.over() && len(w.job.State.Waiting) == 0 {
			digest = incomplete(r.view)
		}
	} else if err != nil {
		return session.Performed{}, err
	}
	return session.Performed{Ref: r.has.String(), Shown: digest}, nil
}

// incomplete is the digest of a view of which a part is not shown yet. It
// differs from the whole one's, so another report follows, but in nothing that
// would make that follow at once.
func incomplete(v session.View) string { return string(v.Phase) + ":" }

// remembered is what was shown last. At a turn's beginning, and after a sweep,
// nobody is sure of it.
func (w *work) remembered() shown {
	for _, v := range w.job.State.Threads {
		if v.Thread != w.thread.session() {
			continue
		}
		s := parseShown(v.Ref)
		if v.Shown == "" {
			s.plan, s.links = "", ""
		}
		return s
	}
	return shown{}
}

func (r *report) over() bool { return r.view.Phase == session.PhaseEnded }

func (r *report) update(ctx context.Context) error {
	parts := []func(context.Context) error{r.links, r.plan, r.attach, r.step}
	if r.thread.silent() {
		parts = []func(context.Context) error{r.move, r.card, r.attach}
	}
	for _, part := range parts {
		if err := r.tolerate(ctx, part(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// tolerate lets go of what Linear will never show: it would be asked the same
// again and again, and the rest matters more.
func (r *report) tolerate(ctx context.Context, err error) error {
	if !refusedInput(err) {
		return err
	}
	r.app.log.WarnContext(ctx, "linear does not show this", "session", string(r.view.Session), "err", err)
	return nil
}

// noRoom: it was the rate.
func noRoom(err error) bool {
	var wait *notYet
	v, ok := verdictOf(err)
	return errors.As(err, &wait) || ok && v.limited()
}

// request makes one, now or not at all: others of this session wait behind it.
func (r *report) request(ctx context.Context, request func(graphql.Client) error) error {
	return r.try(ctx, r.urgency(), costWrite, request)
}

// urgency is that of progress until the answer has gone out: it is not to take
// from what the answer needs.
func (r *report) urgency() Priority {
	answers := func(e session.Effect) bool { return e.Kind == session.Answer && e.By == Platform }
	if !r.over() || slices.ContainsFunc(r.job.State.Pending, answers) {
		return Moving
	}
	return Thinking
}

// links are the addresses that the session leads to.
func (r *report) links(ctx context.Context) error {
	urls := linksOf(r.view)
	key := hash(fmt.Sprint(urls))
	if len(urls) == 0 || key == r.has.links {
		return nil
	}
	err := r.request(ctx, func(c graphql.Client) error {
		_, err := ql.SetURLs(ctx, c, r.thread.agentSession, urls)
		return err
	})
	if err == nil || refusedInput(err) {
		r.has.links = key
	}
	return err
}

func linksOf(v session.View) []ql.URL {
	var urls []ql.URL
	if v.PR != nil && absolute(v.PR.URL) {
		urls = append(urls,
			ql.URL{Label: fmt.Sprintf("Pull request #%d", v.PR.Number), Url: v.PR.URL},
			ql.URL{Label: "Checks", Url: v.PR.URL + "/checks"})
	}
	if p := v.Preview; p != nil && absolute(p.URL) {
		urls = append(urls, ql.URL{Label: "Preview", Url: p.URL})
	}
	return urls
}

func absolute(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

// plan is the agent's own list. Until a new turn has one, that of the last
// stays.
func (r *report) plan(ctx context.Context) error {
	plan := planOf(r.view)
	key := hash(fmt.Sprint(plan))
	if len(plan) == 0 || key == r.has.plan {
		return nil
	}
	err := r.request(ctx, func(c graphql.Client) error {
		_, err := ql.SetPlan(ctx, c, r.thread.agentSession, plan)
		return err
	})
	if err == nil || refusedInput(err) {
		r.has.plan = key
	}
	return err
}

// Bounds of a plan.
const (
	maxSteps = 40
	maxStep  = 200
)

func planOf(v session.View) ql.Plan {
	var plan ql.Plan
	for _, t := range v.Todos[:min(len(v.Todos), maxSteps)] {
		text := speakable(bot.Phrase(t.Text, maxStep))
		if strings.TrimSpace(text) == "" {
			continue
		}
		plan = append(plan, ql.Step{Content: text, Status: statusOf(t.Status, v.Phase)})
	}
	return plan
}

// statusOf is a step's status. In a turn that has ended nothing goes on.
func statusOf(status string, phase session.Phase) ql.StepStatus {
	switch {
	case status == "completed":
		return ql.StepCompleted
	case status == "cancelled":
		return ql.StepCanceled
	case status == "in_progress" && phase != session.PhaseEnded:
		return ql.StepInProgress
	}
	return ql.StepPending
}

// attach puts the pull request on the issue, once. Where Linear does not know
// the code host, it is an ordinary link.
func (r *report) attach(ctx context.Context) error {
	pr := r.view.PR
	if pr == nil || r.thread.issue == "" || !absolute(pr.URL) || hash(pr.URL) == r.has.pull {
		return nil
	}
	title := fmt.Sprintf("%s #%d", r.view.Repo, pr.Number)
	err := r.request(ctx, func(c graphql.Client) error {
		_, err := ql.LinkPullRequest(ctx, c, r.thread.issue, title, pr.URL)
		return err
	})
	if refusedInput(err) {
		err = r.request(ctx, func(c graphql.Client) error {
			_, err := ql.Attach(ctx, c, r.thread.issue, title, "Pull request", pr.URL)
			return err
		})
	}
	if err == nil || refusedInput(err) {
		r.has.pull = hash(pr.URL)
	}
	return err
}

// step tells the newest step, or after a long silence that there is none.
func (r *report) step(ctx context.Context) error {
	key, content := r.news()
	priority := Moving
	if key == r.has.step || key == "" {
		if r.over() || r.now.Sub(r.spoke()) < heartbeatAfter {
			return nil
		}
		key, content, priority = r.has.step, ql.Thought(bot.Heartbeat(r.view, r.now.Sub(r.view.Started))), Thinking
	}
	u := utterance{id: r.effect.ID, content: content, ephemeral: true}
	err := r.try(ctx, priority, costWrite, func(c graphql.Client) error { return r.send(ctx, c, u) })
	if err == nil || refusedInput(err) { // it may be there from the first time
		r.has.step, r.has.spoke = key, r.now
	}
	return err
}

// spoke is when something was last told of this turn, its beginning included.
func (r *report) spoke() time.Time {
	if r.has.spoke.After(r.view.Started) {
		return r.has.spoke
	}
	return r.view.Started
}

// news is the newest that can be told of a turn that runs, and what tells it
// from what was told before. None: an empty key.
func (r *report) news() (key string, content ql.Content) {
	v := r.view
	var what string
	switch {
	case v.Phase == session.PhaseQueued:
		what, content = fmt.Sprint("place ", v.Place), ql.Thought(bot.Place(v.Place))
	case v.Phase == session.PhasePreparing && v.Turn > 0:
		what, content = "preparing", ql.Thought(bot.SettingUp(v))
	case v.Phase == session.PhaseWorking && (len(v.Steps) > 0 || v.Doing != ""):
		action, parameter, result := bot.Deed(v)
		what, content = action+"\x00"+parameter+"\x00"+result, ql.Action(speakable(action), speakable(parameter), result)
	default:
		return "", ql.Content{}
	}
	return hash(fmt.Sprint(v.Turn, " ", what)), content
}
