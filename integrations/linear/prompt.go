package linear

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"ship/bot"
	"ship/session"
)

const (
	// keepKeys is longer than maxAge, so that no repetition that is young
	// enough to be taken finds its keys forgotten.
	keepKeys = 7 * 24 * time.Hour
	// maxText of an instruction, maxQuote of what it is about, and maxGuidance
	// within that, in bytes.
	maxText     = 32 << 10
	maxQuote    = 32 << 10
	maxGuidance = 8 << 10
)

// act is what one person did in an agent session.
type act struct {
	thread thread
	ref    ref
	by     session.Person
	// id and content identify it: in requests, and for the dedupe.
	id, content string
	command     bot.Command
	quote       string
	at          time.Time
}

func (a act) deliver(delivery string) session.Delivery {
	return session.Delivery{
		Session: a.thread.id(),
		Keys:    []string{"ln:" + delivery, "ln:" + a.content},
		Keep:    keepKeys,
		Event: session.Event{V: session.EventVersion, Kind: session.Asked, Delivery: delivery, Request: &session.Request{
			ID: a.id, Thread: a.thread.session(), By: a.by, Verb: cmp.Or(a.command.Verb, session.Instruct),
			Text: bot.Prefix(a.command.Text, maxText), Quote: a.quote, Ref: a.ref.String(), Early: true,
			Repo: a.command.Repo, Branch: a.command.Branch, Model: a.command.Model, At: a.at,
		}},
	}
}

// begin is the act with which an agent session begins. Without words the
// issue is the task.
func begin(t thread, by session.Person, words string) act {
	return act{
		thread: t, by: by, id: "ln-s" + t.agentSession, content: "session:" + t.agentSession,
		command: bot.ParseText(addressed(words)),
	}
}

// spoken is what somebody wrote in an agent session.
type spoken struct {
	id, comment, body string
	// stop: they pressed the button.
	stop bool
}

func speak(t thread, by session.Person, s spoken) act {
	a := act{thread: t, by: by, id: "ln-a" + s.id, content: "activity:" + s.id, ref: ref{activity: s.id}}
	if validID.MatchString(s.comment) {
		a.ref.comment = s.comment
	}
	if s.stop {
		a.command = bot.Command{Verb: session.Stop}
	} else {
		a.command = bot.ParseText(addressed(s.body))
	}
	return a
}

// created: an issue was delegated to ship, or ship was mentioned.
func created(p payload, t thread) (a act, ignored string, err error) {
	by, err := p.Session.Creator.person(p.Session.CreatorID)
	if err != nil {
		return act{}, "", err
	}
	if by.Login == p.app() { // we opened the session ourselves
		return act{}, outcomeOwn, nil
	}
	a = begin(t, by, p.mention(by.Login))
	a.quote = p.quote()
	return a, "", nil
}

// prompted: somebody wrote in an agent session, or pressed stop there.
func prompted(p payload, t thread) (a act, ignored string, err error) {
	said := p.Activity
	if !validID.MatchString(said.ID) {
		return act{}, "", fmt.Errorf("activity: %w", bot.ErrMalformed)
	}
	by, err := said.User.person(said.UserID)
	switch {
	case err != nil:
		return act{}, "", err
	case by.Login == p.app():
		return act{}, outcomeOwn, nil
	case said.Content.Type != "" && said.Content.Type != "prompt":
		return act{}, outcomeNoPrompt, nil
	}
	return speak(t, by, spoken{
		id: said.ID, comment: said.Comment, body: cmp.Or(said.Content.Body, said.Body), stop: said.Signal == "stop",
	}), "", nil
}

// mention is the comment with which the session began, empty when there is
// none: then the issue is the task. Only the words of the very person who
// began it are instructions. Linear names the root of the comment's thread,
// which need not be the comment that mentions us: not if the session came from
// another thread, nor if the root is among what was said before.
func (p payload) mention(by string) string {
	c := p.Session.Comment
	if c.UserID == "" || c.UserID != by || p.Session.Source != "" {
		return ""
	}
	for _, earlier := range p.Previous {
		if earlier.ID == c.ID {
			return ""
		}
	}
	return c.Body
}

// salutation is a mention at the very beginning, as text or as a link to a
// profile: it says who is spoken to, not what is to be done.
var salutation = regexp.MustCompile(`^\s*(?:@[^\s,:]+|\[[^\]\n]*\]\(https://[^)\s]*/profiles/[^)\s]*\)|https://[^\s]*/profiles/[^\s,:]+)[,:]?`)

func addressed(text string) string { return strings.TrimSpace(salutation.ReplaceAllString(text, "")) }

// quote is what Linear sends along: the workspace's guidance, unless Linear
// has put it into the context already, and the context. Anybody who may write
// in the workspace may have written it, so it is data.
func (p payload) quote() string {
	var rules strings.Builder
	for _, g := range p.Guidance {
		if body := strings.TrimSpace(g.Body); body != "" && !strings.Contains(p.Context, body) {
			fmt.Fprintf(&rules, "Guidance of the %s:\n%s\n\n", g.origin(), body)
		}
	}
	text := bot.Prefix(rules.String(), maxGuidance)
	return strings.TrimSpace(text + bot.Prefix(p.Context, maxQuote-len(text)))
}

func (g guidance) origin() string {
	if g.Origin.Type == "Team" {
		return strings.TrimSpace("team " + strings.Join(strings.Fields(g.Origin.Team.Name), " "))
	}
	return "workspace"
}
