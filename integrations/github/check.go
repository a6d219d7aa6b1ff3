package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-github/v66/github"

	"ship/bot"
	"ship/session"
)

const (
	// maxSummary of a check run, in bytes where GitHub counts characters.
	maxSummary = 65535
	// maxCheckTitle keeps the line short that GitHub shows beside the name.
	maxCheckTitle = 200
	// neutral is GitHub's word for a conclusion that is neither good nor bad.
	neutral = "neutral"
)

// check puts the session's check run of one commit into the state that is
// wanted. It is found by its stored id, else by the session's id on that
// commit; where there are two, after a crash, the older one is it. What may
// have been done before may have been done by an owner that was frozen, and
// made another: a session that nobody speaks with here is not swept otherwise.
func (w *work) check(ctx context.Context) (session.Performed, error) {
	want := w.effect.Check
	if want == nil || want.SHA == "" {
		return session.Performed{}, &session.Problem{
			Say: "There is no commit yet that a check could be shown on.",
			Err: fmt.Errorf("github: check without a commit"),
		}
	}
	done, err := w.putCheck(ctx, *want)
	if err != nil || !w.job.Repeat {
		return done, err
	}
	return done, w.sweepCommit(ctx, session.CheckState{SHA: want.SHA, Ref: done.Ref}, true)
}

func (w *work) putCheck(ctx context.Context, want session.CheckState) (session.Performed, error) {
	body := w.checkBody(want)
	if _, ok := parseID(w.checkRef()); ok {
		if err := w.updateCheck(ctx, w.checkRef(), body); !gone(err) {
			return session.Performed{Ref: w.checkRef()}, err
		}
	}
	runs, err := w.ownChecks(ctx, want.SHA)
	if err != nil {
		return session.Performed{}, err
	}
	if len(runs) > 0 {
		id := formatID(runs[0].GetID())
		return session.Performed{Ref: id}, w.updateCheck(ctx, id, body)
	}
	return w.createCheck(ctx, want.SHA, body)
}

// checkRef is the id of the commit's check run, as far as is known.
func (w *work) checkRef() string {
	known := w.effect.Check.Ref
	if c := w.job.State.Check; known == "" && c != nil && c.SHA == w.effect.Check.SHA {
		known = c.Ref
	}
	return known
}

func (w *work) createCheck(ctx context.Context, sha string, body checkBody) (session.Performed, error) {
	body.HeadSHA = sha
	var made github.CheckRun
	if err := w.in.create(ctx, w.path("check-runs"), body, &made); err != nil {
		return session.Performed{}, err
	}
	return session.Performed{Ref: formatID(made.GetID())}, nil
}

func (w *work) updateCheck(ctx context.Context, id string, body checkBody) error {
	_, err := w.in.call(ctx, http.MethodPatch, w.path("check-runs/%s", id), body, nil)
	return err
}

// ownChecks returns the session's check runs of a commit, oldest first. Only
// our app can have written them, so the external id is to be believed.
func (w *work) ownChecks(ctx context.Context, sha string) ([]*github.CheckRun, error) {
	query := url.Values{
		"check_name": {checkName}, "filter": {"all"}, "app_id": {strconv.FormatInt(w.app.id, 10)}, "per_page": {"100"},
	}
	var found []*github.CheckRun
	for page := 1; page != 0; {
		query.Set("page", strconv.Itoa(page))
		var list github.ListCheckRunsResults
		resp, err := w.in.call(ctx, http.MethodGet, w.path("commits/%s/check-runs?%s", url.PathEscape(sha), query.Encode()), nil, &list)
		if err != nil {
			return nil, err
		}
		for _, run := range list.CheckRuns {
			if run.GetExternalID() == string(w.job.State.ID) && run.GetApp().GetID() == w.app.id {
				found = append(found, run)
			}
		}
		page = resp.NextPage
	}
	slices.SortFunc(found, func(a, b *github.CheckRun) int { return cmp.Compare(a.GetID(), b.GetID()) })
	return found, nil
}

// checkBody is what creating and updating a check run have in common. The
// client library cannot set when an updated one was started.
type checkBody struct {
	Name       string                  `json:"name"`
	HeadSHA    string                  `json:"head_sha,omitempty"`
	ExternalID string                  `json:"external_id"`
	DetailsURL string                  `json:"details_url,omitempty"`
	Status     string                  `json:"status"`
	Conclusion string                  `json:"conclusion,omitempty"`
	StartedAt  time.Time               `json:"started_at,omitzero"`
	Output     checkOutput             `json:"output"`
	Actions    []github.CheckRunAction `json:"actions"`
}

type checkOutput struct {
	Title   string `json:"title"`
	Summary string `json:"summary"`
}

func (w *work) checkBody(want session.CheckState) checkBody {
	s := w.job.State
	title, summary := bot.CheckOutput(session.ViewOf(s))
	b := checkBody{
		Name: checkName, ExternalID: string(s.ID), DetailsURL: w.details(),
		Status: "in_progress", Conclusion: want.Conclusion, Actions: w.buttons(want),
		Output: checkOutput{
			Title:   bot.Prefix(oneLine(cmp.Or(want.Title, title, checkName)), maxCheckTitle),
			Summary: bot.Cut(cmp.Or(want.Summary, summary), maxSummary),
		},
	}
	if want.Conclusion != "" {
		b.Status = "completed"
	}
	if s.Turn != nil {
		b.StartedAt = s.Turn.Started.UTC()
	}
	return b
}

// buttons of a check run: GitHub shows them, three at most, beside it. Neutral
// is what neither failed nor is done: the work went on at another commit, or
// waits for an answer, which no button gives. An empty list takes away those
// that were there.
func (w *work) buttons(want session.CheckState) []github.CheckRunAction {
	switch want.Conclusion {
	case "":
		return []github.CheckRunAction{{Label: "Stop", Description: "Stop the current turn", Identifier: actionStop}}
	case neutral:
		return []github.CheckRunAction{}
	}
	all := []github.CheckRunAction{{Label: "Retry", Description: "Do the last request again", Identifier: actionRetry}}
	if pr := w.job.State.PR; pr != nil && pr.Draft {
		all = append(all, github.CheckRunAction{Label: "Mark ready", Description: "Mark it ready for review", Identifier: actionReady})
	}
	return all
}

// details is where the check run links to: where the session is spoken with,
// or what it is about.
func (w *work) details() string {
	if pr := w.job.State.PR; pr != nil && pr.URL != "" {
		return pr.URL
	}
	if repoID, number, ok := sessionThread(w.job.State.ID); ok && repoID == w.repo.id {
		return fmt.Sprintf("%s/%s/issues/%d", w.webURL, w.repo.fullName(), number)
	}
	if o := w.job.State.Origin; o != nil && o.URL != "" {
		return o.URL
	}
	return w.publicURL
}
