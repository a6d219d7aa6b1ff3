package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"ship/config"
	ql "ship/graphql/linear"
	"ship/integrations/linear"
	"ship/integrations/linear/lineartest"
)

const demoTeam = "SHOP"

// linearScene is an issue in a stand-in for Linear, which is assigned to ship.
type linearScene struct {
	*stage
	linear *lineartest.Server
	// issue is named as in Linear, and session is the agent session there.
	issue, session string
	// What was shown last.
	plan, state, card string
	heard             int
}

func inLinear(s *stage) (scene, error) {
	l, err := openLinear(s)
	if err != nil {
		return scene{}, err
	}
	return scene{where: "Linear on " + l.linear.URL, ask: l.ask, listen: l.listen, ending: l.ending, close: l.linear.Close}, nil
}

// openLinear starts a stand-in with an issue, and adds it to the settings.
func openLinear(s *stage) (*linearScene, error) {
	stand, err := lineartest.New(lineartest.Options{})
	if err != nil {
		return nil, err
	}
	stand.CreateTeam(demoTeam, "Shop")
	l := &linearScene{stage: s, linear: stand}
	l.issue = stand.CreateIssue(lineartest.Issue{Team: demoTeam, Title: sampleTitle, Description: sampleIssue, Creator: demoPerson})
	s.settings.Linear = linear.Settings{
		ClientID: stand.ClientID(), ClientSecret: config.NewSecret(stand.ClientSecret()), WebhookSecret: config.NewSecrets(demoSecret),
		APIURL: stand.APIURL(), TokenURL: stand.TokenURL(),
	}
	s.settings.Routes.Teams = map[string]string{demoTeam: demoRepo}
	l.state = stand.Issue(l.issue).State
	return l, nil
}

func (l *linearScene) ask(ctx context.Context, url string) error {
	id, d := l.linear.Delegate(l.issue, demoPerson)
	l.session = id
	l.line("@"+demoPerson, "assigns "+l.issue+" to ship in Linear: "+sampleTitle)
	status, err := lineartest.Deliver(ctx, url+"/webhooks/linear", d.Sign(demoSecret))
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("the webhook was answered with %d", status)
	}
	return nil
}

// listen prints what was said in the agent session since the last time, and
// what became of the issue.
func (l *linearScene) listen() {
	said := l.linear.Session(l.session)
	for _, a := range said.Activities[l.heard:] {
		if a.By != demoPerson {
			l.line("Linear", activityLine(a))
		}
	}
	l.heard = len(said.Activities)
	if plan := planLine(said.Plan); plan != l.plan {
		l.plan = plan
		l.line("Linear", "plan      "+plan)
	}
	l.watch()
}

// watch prints what became of the issue since the last time.
func (l *linearScene) watch() {
	issue := l.linear.Issue(l.issue)
	if issue.State != l.state {
		l.line("Linear", "issue     "+l.issue+" is "+issue.State)
		l.state = issue.State
	}
	for _, a := range issue.Attachments {
		if card := a.Title + ": " + a.Subtitle; a.Subtitle != "" && card != l.card {
			l.card = card
			l.line("Linear", "attached  "+card)
		}
	}
}

func activityLine(a lineartest.Activity) string {
	text := a.Content.Body
	switch a.Content.Type {
	case ql.TypeAction:
		text = a.Content.Action + " " + a.Content.Parameter
	case ql.TypeResponse, ql.TypeError:
		text = "the last word, shown below"
	}
	return fmt.Sprintf("%-9s %s", a.Content.Type, shorten(text, 100))
}

func planLine(plan ql.Plan) string {
	marks := map[ql.StepStatus]string{ql.StepCompleted: "✓", ql.StepInProgress: "▸"}
	var b strings.Builder
	for _, step := range plan {
		fmt.Fprintf(&b, "%s %s  ", cmp.Or(marks[step.Status], "·"), step.Content)
	}
	return strings.TrimSpace(b.String())
}

// ending shows how the session ended.
func (l *linearScene) ending() {
	said, issue := l.linear.Session(l.session), l.linear.Issue(l.issue)
	l.title(fmt.Sprintf("The session in Linear: %s; %s is %s", said.Status, l.issue, issue.State))
	for _, a := range said.Activities {
		if a.Content.Type == ql.TypeResponse || a.Content.Type == ql.TypeError {
			fmt.Fprintln(l.out, indent(a.Content.Body))
		}
	}
	l.attached()
}

// attached lists what is attached to the issue.
func (l *linearScene) attached() {
	for _, a := range l.linear.Issue(l.issue).Attachments {
		fmt.Fprintf(l.out, "  attached: %s\n", strings.TrimSpace(a.Title+" "+a.Subtitle+" "+a.URL))
	}
	fmt.Fprintln(l.out)
}
