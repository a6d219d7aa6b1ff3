package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/integrations/slack/slacktest"
)

// issueTalk is the conversation of an issue on GitHub.
type issueTalk struct {
	lab    *lab
	number int
}

func newIssueTalk(l *lab) talk {
	return &issueTalk{l, l.host.CreateIssue(rigRepo, "mona", "Widgets are broken", "They do not turn.")}
}

func (k *issueTalk) says(text string) []posting {
	d := k.lab.rig.says(k.number, "/ship "+text)
	return []posting{func(g *gateway) bool { return g.takesGitHub(d) }}
}

func (k *issueTalk) stop() []posting { return k.says("stop") }

func (k *issueTalk) ended() bool {
	text := k.lab.sticky(k.number)
	return text == "" || stickyEnded.MatchString(text)
}

// check: one status comment that says how it ended, and one answer to each
// question about it.
func (k *issueTalk) check(th *thread) {
	l := k.lab
	if n := l.said(k.number, "<!-- ship:session="); n > 1 || n == 0 && th.count(work) > 0 {
		l.broken("#%d has %d status comments", k.number, n)
	}
	if text := l.sticky(k.number); text != "" && !stickyEnded.MatchString(text) {
		l.broken("#%d has no last word:\n%s", k.number, text)
	}
	seen, answers := map[string]bool{}, 0
	for _, c := range l.host.Comments(rigRepo, k.number) {
		id := saidAs(c.Body)
		if id == "" || !strings.HasSuffix(c.Author, "[bot]") {
			continue
		}
		if seen[id] {
			l.broken("#%d: %s is said twice", k.number, id)
		}
		seen[id] = true
		if !besides.MatchString(c.Body) {
			answers++
		}
	}
	if n := th.count(status); answers != n {
		l.broken("#%d: %d answers to %d questions about the status", k.number, answers, n)
	}
}

// saidAs is the id under which a comment was decided, if it is a sentence of
// ship's.
func saidAs(body string) string {
	_, id, _ := strings.Cut(body, "<!-- ship:say=")
	id, _, _ = strings.Cut(id, " ")
	return id
}

// linearTalk is a session of Linear.
type linearTalk struct {
	lab *lab
	id  string
}

func newLinearTalk(l *lab) talk { return &linearTalk{lab: l} }

func (k *linearTalk) says(text string) []posting {
	var d lineartest.Delivery
	if k.id == "" {
		k.id, d = k.lab.linear.Mention(lineartest.Mention{Issue: k.lab.linearIssue, By: "ada", Body: "@ship " + text})
	} else {
		d = k.lab.linear.Prompt(k.id, "ada", text)
	}
	return []posting{func(g *gateway) bool { return g.takesLinear(d) }}
}

func (k *linearTalk) stop() []posting {
	d := k.lab.linear.Stop(k.id, "ada")
	return []posting{func(g *gateway) bool { return g.takesLinear(d) }}
}

func (k *linearTalk) rig() *linearRig { return k.lab.ships[0].linearRig() }

func (k *linearTalk) ended() bool {
	kind := k.rig().last(k.id).Content.Type
	return kind == ql.TypeResponse || kind == ql.TypeError
}

// check: the last word is an end, and no words are said twice under one id.
func (k *linearTalk) check(th *thread) {
	r := k.rig()
	if !k.ended() {
		k.lab.broken("linear's session %s ends with %+v", k.id, r.last(k.id).Content)
	}
	seen := map[string]bool{}
	for _, a := range k.lab.linear.Session(k.id).Activities {
		if seen[a.ID] {
			k.lab.broken("linear's activity %s is there twice", a.ID)
		}
		seen[a.ID] = true
	}
	for _, step := range k.lab.linear.Session(k.id).Plan {
		if step.Status == ql.StepInProgress {
			k.lab.broken("linear's plan goes on: %+v", step)
		}
	}
	if turns := k.lab.turnsOf("ln." + k.id); turns >= 0 {
		if n, want := len(k.words()), turns+th.count(status); n != want {
			k.lab.broken("linear's session %s has %d answers after %d turns and %d other questions: %q", k.id, n, turns, th.count(status), k.words())
		}
	}
}

// words are what ship said for good: the end of each turn, and the answer to
// each other question, which is a thought while a turn is under way, because a
// response would end what Linear shows of it.
func (k *linearTalk) words() (out []string) {
	for _, a := range k.lab.linear.Session(k.id).Activities {
		if a.By == "ship" && !a.Ephemeral && !besides.MatchString(a.Content.Body) && !linearNoise.MatchString(a.Content.Body) {
			out = append(out, fmt.Sprintf("%s: %s", a.Content.Type, a.Content.Body))
		}
	}
	return out
}

// linearNoise are the words that ship greets with, of which Linear demands that
// they are there in seconds.
var linearNoise = regexp.MustCompile(`^Thanks, I'm looking into this`)

// slackTalk is a thread of Slack.
type slackTalk struct {
	lab  *lab
	root string
}

func newSlackTalk(l *lab) talk { return &slackTalk{lab: l} }

func (k *slackTalk) says(text string) []posting {
	ts, ds := k.lab.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: text, Thread: k.root})
	if k.root == "" {
		k.root = ts
	}
	var all []posting
	for _, d := range ds {
		all = append(all, func(g *gateway) bool { return g.takesSlack(d) })
	}
	return all
}

func (k *slackTalk) stop() []posting { return k.says("stop") }

func (k *slackTalk) rig() *slackRig { return k.lab.ships[0].slackRig() }

func (k *slackTalk) ended() bool {
	living, said := k.rig().living(k.root), k.rig().said(k.root)
	if len(living) == 0 {
		return len(said) > 0
	}
	return len(said) > 0 && said[len(said)-1].TS > living[len(living)-1].TS
}

// check: as in all tests of Slack, and one final message for each turn.
func (k *slackTalk) check(th *thread) {
	r := k.rig()
	noting := *r.rig
	noting.t = k.lab.notes
	(&slackRig{rig: &noting, slack: r.slack}).checkSlack()
	turns := k.lab.turnsOf("." + strings.ReplaceAll(k.root, ".", "-"))
	if n := len(r.living(k.root)); turns >= 0 && n != turns {
		k.lab.broken("slack's thread %s has %d living messages after %d turns", k.root, n, turns)
	}
	said := slices.DeleteFunc(r.said(k.root), func(m slacktest.Message) bool { return besides.MatchString(m.Plain) })
	if n, want := len(said), turns+th.count(status); turns >= 0 && n != want {
		k.lab.broken("slack's thread %s has %d final messages after %d turns and %d other questions", k.root, n, turns, th.count(status))
	}
}

// besides are words of ship that are no turn's end and no answer: what was
// dropped by a stop, that there was nothing to stop or to retry, and that a box
// was lost.
var besides = regexp.MustCompile(`said stop before I|Nothing was running|Nothing is running|You said stop after|nothing to retry|The box was lost(, so|\. I continue)`)
