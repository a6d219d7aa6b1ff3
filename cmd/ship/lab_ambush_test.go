package main

import (
	"encoding/json"
	"net/url"
	"slices"
	"sync"
	"time"

	"ship/integrations/slack/slacktest"
)

// ambush kills both ships at the moment at which one of them has asked a
// platform to post something. The platform does it, and nobody hears of that:
// whoever takes over has to look whether it is there.
type ambush struct {
	lab *lab
	// name of the platform, of which named reads the id under which a request
	// posts something (empty: it does not), and there tells whether that is there.
	name  string
	named func(what string, body []byte) (id string)
	there func(id string) bool

	mu      sync.Mutex
	skip    int      // guarded by mu: how many posts come first
	over    bool     // guarded by mu
	struck  string   // guarded by mu: the id at which the ships died
	doubled []string // guarded by mu
}

// newAmbushes are one on each platform that would show twice what it is sent twice.
// Linear refuses an id that it has.
func newAmbushes(s *saboteur) []*ambush {
	l := s.lab
	github := &ambush{lab: l, name: "github", named: commentNamed, there: l.commented, skip: s.rng.IntN(2)}
	slack := &ambush{lab: l, name: "slack", named: messageNamed, there: l.messaged, skip: s.rng.IntN(4)}
	l.host.Watch(func(what string, body []byte) { github.see(s, what, body) })
	l.slack.Watch(func(what string, body []byte) { slack.see(s, what, body) })
	return []*ambush{github, slack}
}

// see is told of each request before the platform does what it asks for.
func (a *ambush) see(s *saboteur, what string, body []byte) {
	id := a.named(what, body)
	if id != "" && a.due(id) {
		s.interrupt(func() { s.bothDie(a.name) })
	}
}

// due notes that something is about to be posted, and tells whether the ships
// are to die of it.
func (a *ambush) due(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.struck == id && a.there(id):
		a.doubled = append(a.doubled, id)
	case a.struck != "" || a.over:
	case a.skip > 0:
		a.skip--
	default:
		a.struck = id
		return true
	}
	return false
}

// lift ends it: from now on, nobody dies.
func (a *ambush) lift() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

// check: what was there was not posted once more. No sweep excuses this, for
// the one who had posted it was dead.
func (a *ambush) check() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range a.doubled {
		a.lab.broken("%s was asked to post %s, which was there", a.name, id)
	}
}

// bothDie kills all ships, which begin anew.
func (s *saboteur) bothDie(platform string) {
	s.tally.add("kill in a post", 1)
	s.journal("both die of a post to %s", platform)
	for _, g := range s.ships {
		g.die()
		s.plan = append(s.plan, move{time.Since(s.began) + s.between(1, 3000), func() { g.up() }})
	}
}

// commentNamed is the id of a sentence in an issue.
func commentNamed(what string, body []byte) string {
	var in struct{ Body string }
	if what != "POST /repos/{owner}/{repo}/issues/{number}/comments" || json.Unmarshal(body, &in) != nil {
		return ""
	}
	return saidAs(in.Body)
}

func (l *lab) commented(id string) bool {
	for _, th := range l.story.threads {
		if k, ok := th.talk.(*issueTalk); ok && l.said(k.number, "<!-- ship:say="+id+" ") > 0 {
			return true
		}
	}
	return false
}

// messageNamed is the id of a message in Slack.
func messageNamed(what string, body []byte) string {
	form, err := url.ParseQuery(string(body))
	if what != "chat.postMessage" || err != nil {
		return ""
	}
	return outbox(slacktest.Message{Metadata: json.RawMessage(form.Get("metadata"))})
}

func (l *lab) messaged(id string) bool {
	return slices.ContainsFunc(l.slack.Messages(rigChannel), func(m slacktest.Message) bool {
		return m.By == "ship" && outbox(m) == id
	})
}
