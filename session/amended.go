package session

import (
	"cmp"
	"slices"
	"strings"
)

// anotherMessage is what an edit leads to that changes more than words.
const anotherMessage = "Your edit changes more than the words of what you asked, so I go by what it said before. Write the rest in a message of its own."

// tooLate is what an edit leads to that comes when the agent is at it.
const tooLate = "I had begun with what it said before your edit, so I go by that. Write what is to be different in a message of its own."

// amended takes over the words of a request that nobody has begun to work on.
// Later the agent has read it already, and what it did cannot be unsaid.
func (n *step) amended(r Request, before string) {
	open := n.unapplied(r.ID)
	if open == nil {
		n.missed(r)
		return
	}
	if open.Text == r.Text {
		return
	}
	repo := open.Repo
	if open.Said != "" && r.Repo == "" { // it came with the answer to a question
		repo = ""
	}
	if r.Verb != open.Verb || r.Repo != repo || r.Branch != open.Branch || r.Model != open.Model {
		n.say(r, anotherMessage)
		return
	}
	if open.Text == before || !strings.Contains(open.Text, before) {
		open.Text = r.Text
		return
	}
	open.Text = strings.Replace(open.Text, before, r.Text, 1) // more was said while it waited
}

// missed: an edit came when the agent was at it. Whoever made it is told the
// first time; most of the others are of typing errors.
func (n *step) missed(r Request) {
	if !n.Busy() {
		return
	}
	i := slices.IndexFunc(n.Turn.Requests, func(at Request) bool { return at.says(r.ID) })
	if i < 0 || n.Turn.Requests[i].Text == r.Text && n.Turn.Requests[i].Verb == r.Verb {
		return
	}
	n.Turn.Requests[i].Said = r.ID + ".told"
	n.say(r, tooLate)
}

// unapplied finds a request that no work has begun on, by the id of what was
// said; nil: there is none. Whoever answered a question for somebody else, or
// has their work done again, does not change their words by an edit. What it
// points to may be changed.
func (n *step) unapplied(id string) *Request {
	for i := range n.Pending {
		if e := &n.Pending[i]; e.Kind == Admit && e.Request.says(id) {
			open := *e.Request
			e.Request = &open
			return e.Request
		}
	}
	if n.Asking != nil && n.Asking.Request.says(id) {
		return &n.Asking.Request
	}
	for i := range n.Waiting {
		if n.Waiting[i].says(id) {
			return &n.Waiting[i].Request
		}
	}
	return n.preparing(id)
}

// preparing finds a request of a turn whose agent has not heard of it.
func (n *step) preparing(id string) *Request {
	if n.Turn == nil || n.Turn.Stage != Preparing {
		return nil
	}
	for i := range n.Turn.Requests {
		if n.Turn.Requests[i].says(id) {
			return &n.Turn.Requests[i]
		}
	}
	return nil
}

// said are the ids of what was said in these words.
func (r Request) said() string { return cmp.Or(r.Said, r.ID) }

// says: a part of these words was said under an id.
func (r Request) says(id string) bool { return slices.Contains(strings.Fields(r.said()), id) }
