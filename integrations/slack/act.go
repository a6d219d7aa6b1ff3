package slack

import (
	"cmp"
	"time"

	"ship/bot"
	"ship/session"
)

const (
	// keepKeys is much longer than Slack repeats anything, which is a day at
	// most, so that reading back what was missed finds what was not.
	keepKeys = 7 * 24 * time.Hour
	// maxText of an instruction and maxQuote of what it is about, in bytes.
	maxText  = 32 << 10
	maxQuote = 16 << 10
)

// act is what one person did in a thread.
type act struct {
	thread thread
	ref    ref
	by     session.Person
	// id of the request; content is the dedupe key of what was done.
	id, content string
	command     bot.Command
	quote       string
	// early: there is a message of the person's to react to at once.
	early bool
	// known: it is for us only in a thread that has a session.
	known bool
	// amends: it changes the words of an earlier act of the same id, which were
	// these before.
	amends bool
	before string
	at     time.Time
}

// deliver makes a delivery of an act. Slack's own id for that comes first, if
// there is a proper one.
func (a act) deliver(delivery string) session.Delivery {
	keys := []string{"sl:" + a.content}
	if validDelivery.MatchString(delivery) {
		keys = []string{"sl:" + delivery, "sl:" + a.content}
	}
	kind := session.Asked
	if a.amends {
		kind = session.Amended
	}
	return session.Delivery{
		Session: a.thread.id(), Keys: keys, Keep: keepKeys, Known: a.known,
		Event: session.Event{V: session.EventVersion, Kind: kind, Delivery: delivery, Before: bot.Prefix(a.before, maxText), Request: &session.Request{
			ID: a.id, Thread: a.thread.session(), By: a.by, Verb: cmp.Or(a.command.Verb, session.Instruct),
			Text: bot.Prefix(a.command.Text, maxText), Quote: bot.Prefix(a.quote, maxQuote), Ref: a.ref.of(a.by.Login).String(), Early: a.early,
			Repo: a.command.Repo, Branch: a.command.Branch, Model: a.command.Model, At: a.at,
		}},
	}
}
