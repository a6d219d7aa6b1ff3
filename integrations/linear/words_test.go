package linear

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/bot"
	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/sandbox/lifecycle"
	"ship/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

// play is one conversation from the first webhook on, in virtual time. What
// goes to Linear is performed; what happens in boxes and on the code host is
// the script's. What people get to see there is written down as it appears.
type play struct {
	*desk
	policy session.Policy
	begun  time.Time
	talk   string // id of the agent session
	// what was written down already
	heard      int
	plan       string
	links      string
	issueLine  string
	transcript strings.Builder
	// refused: the next push is.
	refused string
	// empty: the agent changed nothing.
	empty bool
}

// plays runs a script and compares what people saw with what they saw before.
func plays(t *testing.T, name string, script func(*play)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		d.gate.Routes.Default = "acme/widgets"
		synctest.Test(t, func(t *testing.T) {
			p := &play{desk: d, begun: time.Now(), policy: session.Policy{
				Model: "acme/large", Models: []string{"acme/large", "acme/small"}, BudgetUSD: 5, MaxBudgetUSD: 20, Extend: true,
				TurnTimeout: 3 * time.Hour, Boxes: lifecycle.Policy{IdleDestroy: time.Hour},
				Pace:   func(_ string, running time.Duration) session.Pace { return Pace(running) },
				Help:   func(string) string { return bot.HelpText(bot.Talking) },
				Status: func(_ string, v session.View) string { return bot.StatusLine(bot.Talking, v) },
			}}
			d.t = t
			script(p)
			p.line("", fmt.Sprintf("session %s", p.Session(p.talk).Status), "")
			compare(t, name, p.transcript.String())
		})
	})
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "words", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not as it was (go test -update writes it anew) (-want +got):\n%s", path, diff)
	}
	for _, inside := range []string{"/ship", "ln.", "effect", "admission"} {
		if strings.Contains(strings.ReplaceAll(got, "branch `ship/", ""), inside) {
			t.Errorf("people read %q", inside)
		}
	}
}

// line writes down what was to be seen, and when.
func (p *play) line(who, what, text string) {
	at := time.Since(p.begun).Round(time.Second)
	fmt.Fprintf(&p.transcript, "%8s  %-5s %s\n", at, who, what)
	for l := range strings.Lines(text) {
		fmt.Fprintf(&p.transcript, "                | %s\n", strings.TrimRight(l, "\n"))
	}
}

// ask takes a webhook in, and does all that can be done at once.
func (p *play) ask(hook lineartest.Delivery) {
	r := p.request(hook)
	p.fold(session.Event{Kind: session.Asked, Request: &r})
	p.settle()
}

func (p *play) assigned() {
	p.open("delegates: Login test is flaky", func() (string, lineartest.Delivery) { return p.Delegate(p.issue, "ada") })
}

func (p *play) open(how string, begin func() (string, lineartest.Delivery)) {
	id, hook := begin()
	p.talk, p.state = id, session.State{ID: thread{p.OrganizationID(), id, p.Issue(p.issue).ID}.id()}
	p.issueLine = p.issueNow()
	p.line("ada", how, "")
	p.ask(hook)
}

func (p *play) says(who, text string) { p.ask(p.Prompt(p.talk, who, text)) }

func (p *play) fold(e session.Event) {
	e.At = time.Now()
	p.state = session.Step(p.state, e, p.policy)
	p.look()
}

// settle performs what is due, but for what the script decides.
func (p *play) settle() {
	for {
		i := slices.IndexFunc(p.state.Pending, func(e session.Effect) bool {
			return e.Kind != session.Prepare && e.Kind != session.Run && !e.Due.After(time.Now())
		})
		if i < 0 {
			return
		}
		p.act(p.state.Pending[i])
	}
}

func (p *play) act(e session.Effect) {
	if e.By != Platform {
		p.away(e)
		return
	}
	done, err := p.linear.Perform(p.t.Context(), session.Job{Effect: e, State: p.state, Repeat: e.Attempts > 0})
	if err != nil {
		p.t.Fatalf("%s: %v", e.Kind, err)
	}
	p.fold(session.Event{Kind: session.Done, Performed: &done})
}

// away is what happens in boxes and on the code host.
func (p *play) away(e session.Effect) {
	done := &session.Performed{Effect: e.ID}
	switch e.Kind {
	case session.Publish:
		if p.refused != "" {
			p.fold(session.Event{Kind: session.Broke, Failed: &session.Failed{Effect: e.ID, Say: p.refused}})
			return
		}
		done.Published = &session.Published{}
		if !p.empty {
			done.Published = &session.Published{Head: "4f3c2b1a09", Changed: true, Files: 2}
		}
	case session.Open:
		done.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7", Draft: true}
	case session.MarkReady:
		done.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7"}
	}
	p.fold(session.Event{Kind: session.Done, Performed: done})
}

// pass lets time pass, with what falls due in it.
func (p *play) pass(d time.Duration) {
	for ; d > 0; d -= 5 * time.Second {
		by := min(d, 5*time.Second)
		time.Sleep(by)
		p.fold(session.Event{Kind: session.Tick})
		p.settle()
	}
}

// worker is the effect that the box is at.
func (p *play) worker(k session.EffectKind) string {
	p.t.Helper()
	i := slices.IndexFunc(p.state.Pending, func(e session.Effect) bool { return e.Kind == k })
	if i < 0 {
		p.t.Fatalf("no %s: %+v", k, p.state.Pending)
	}
	return p.state.Pending[i].ID
}

// boxed: the box is ready, and the agent begins.
func (p *play) boxed() {
	p.fold(session.Event{Kind: session.Done, Performed: &session.Performed{
		Effect: p.worker(session.Prepare), Prepared: &session.Prepared{Box: "box", Head: "0123456789"},
	}})
	p.settle()
}

// moves is what the agent does now, with its list of what there is to do.
func (p *play) moves(step string, todos ...session.Todo) {
	p.fold(session.Event{Kind: session.Moved, Progress: &session.Progress{
		Doing: step, Steps: []string{step}, Todos: todos, Usage: session.Usage{Calls: 4, USD: 0.12},
	}})
	p.settle()
}

// ends: the agent's part is over.
func (p *play) ends(o session.Outcome) {
	o.Served = len(p.state.Turn.Requests)
	if o.Usage == (session.Usage{}) {
		o.Usage = session.Usage{Calls: 9, USD: 0.41}
	}
	p.fold(session.Event{Kind: session.Done, Performed: &session.Performed{Effect: p.worker(session.Run), Turn: &o}})
	p.settle()
	p.pass(10 * time.Second)
}

// look writes down what is new to see.
func (p *play) look() {
	s := p.Session(p.talk)
	for _, a := range s.Activities[p.heard:] {
		p.activity(a)
	}
	p.heard = len(s.Activities)
	if plan := planText(s.Plan); plan != p.plan {
		p.plan = plan
		p.line("ship", "plan", plan)
	}
	if links := linkText(s.Links); links != p.links {
		p.links = links
		p.line("ship", "links", links)
	}
	if now := p.issueNow(); now != p.issueLine {
		p.issueLine = now
		p.line("", "issue", now)
	}
}

func (p *play) activity(a lineartest.Activity) {
	what := string(a.Content.Type)
	if a.Ephemeral {
		what += " (passing)"
	}
	text := a.Content.Body
	if a.Content.Type == ql.TypeAction {
		text = fmt.Sprintf("%s `%s`", a.Content.Action, a.Content.Parameter)
		if a.Content.Result != "" {
			text += "\n→ " + a.Content.Result
		}
	}
	if len(a.Metadata) > 0 && string(a.Metadata) != "null" {
		text += fmt.Sprintf("\n[%s] %s", a.Signal, a.Metadata)
	}
	p.line(a.By, what, text)
}

func planText(plan ql.Plan) string {
	var b strings.Builder
	for _, s := range plan {
		fmt.Fprintf(&b, "%s: %s\n", s.Status, s.Content)
	}
	return b.String()
}

func linkText(links []ql.Link) string {
	var b strings.Builder
	for _, l := range links {
		fmt.Fprintf(&b, "%s: %s\n", l.Label, l.Url)
	}
	return b.String()
}

func (p *play) issueNow() string {
	i := p.Issue(p.issue)
	text := fmt.Sprintf("%s, delegate %q\n", i.State, i.Delegate)
	for _, a := range i.Attachments {
		text += fmt.Sprintf("attachment %q: %s\n", a.Title, a.URL)
	}
	return text
}
