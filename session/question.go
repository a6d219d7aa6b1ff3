package session

import (
	"cmp"
	"slices"
	"strings"
)

// doubt: a request cannot be begun before a question is answered. What is asked
// while one is open waits for the same answer.
func (n *step) doubt(r Request, q Question) {
	if r.Led != (Person{}) { // where they led it, it does not go
		r.Repo, r.Led = "", Person{}
	}
	switch {
	case n.Asking == nil:
		n.ask(r, q)
	case n.Asking.Request.By.Login == r.By.Login:
		n.Asking.add(r)
	default:
		n.deny(r, "I was asked something here before, and still need to know in which repository. Please ask again when that is settled.")
	}
}

// add adds words to what waits, as far as there is room, by who asked for that.
func (a *Asking) add(r Request) {
	all := strings.TrimSpace(a.Request.Text + "\n\n" + strings.TrimSpace(r.Text))
	if len(all) > maxAsking {
		all = strings.ToValidUTF8(all[:maxAsking], "")
	}
	a.Request.Text = all
	if said := a.Request.said() + " " + r.ID; len(said) <= maxSaid {
		a.Request.Said = said
	}
}

// ask puts a question before a request, which waits for the answer.
func (n *step) ask(r Request, q Question) {
	n.Asking = &Asking{Request: r, Question: q}
	n.add(Effect{Kind: Ask, By: r.Thread.Platform, Thread: &r.Thread, Text: q.Text, Choices: q.Choices, Ref: r.Ref},
		"request", r.ID)
}

// stillAsking is what an answer leads to that does not answer.
const stillAsking = "I could not tell from that which repository you mean. Choose one, or write its name as `OWNER/NAME`; I begin as soon as I know."

// answered takes r for the answer to the open question, if it is in its thread
// and no command. The request that waits is then asked anew, in the place of
// the answer: whoever asked it needs the right to, not who answers. That one may
// therefore choose only from what was offered: anywhere else, such as to a
// repository that all the world can read, only the one who asked leads the work.
func (n *step) answered(r Request) bool {
	if n.Asking == nil || r.Verb != Instruct || r.Thread != n.Asking.Request.Thread {
		return false
	}
	repo, own := cmp.Or(r.Repo, n.Asking.Question.choose(r.Text)), r.By.Login == n.Asking.Request.By.Login
	switch {
	case own && (repo == "" || r.Repo != ""):
		n.Asking.add(r)
	case !own && !n.Asking.Question.offers(repo):
		repo = ""
	}
	asked := n.Asking.Request
	asked.Said = asked.said()
	asked.ID, asked.Ref, asked.At, asked.Early = r.ID, r.Ref, r.At, r.Early
	n.Refused = nil // who asked was asked back, and waits for what comes of the answer
	if repo == "" {
		n.ask(asked, Question{Text: stillAsking, Choices: n.Asking.Question.Choices})
		return true
	}
	asked.Repo, asked.Led, n.Asking = repo, Person{}, nil
	if !own {
		asked.Led = r.By
	}
	n.admit(asked)
	return true
}

// choose is the value of the one choice that an answer names: by its value or
// label, or by the last part of its value. Empty: none, or more than one.
func (q Question) choose(answer string) string {
	answer = strings.Trim(strings.TrimSpace(answer), "`\"'.!")
	var found []string
	for _, c := range q.Choices {
		if strings.EqualFold(answer, c.Value) || strings.EqualFold(answer, c.Label) {
			return c.Value
		}
		last := c.Value[strings.LastIndexByte(c.Value, '/')+1:]
		if strings.EqualFold(answer, last) {
			found = append(found, c.Value)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// offers: one of the choices means that.
func (q Question) offers(value string) bool {
	return slices.ContainsFunc(q.Choices, func(c Choice) bool { return strings.EqualFold(c.Value, value) })
}

// lose: there is nobody to be told any more where an effect was to be
// performed. Work that is told of nowhere else ends.
func (n *step) lose(e Effect) {
	if e.Thread == nil {
		return
	}
	lost := *e.Thread
	n.Threads = slices.DeleteFunc(n.Threads, func(v Voice) bool { return v.Thread == lost })
	n.Waiting = slices.DeleteFunc(n.Waiting, func(a Admitted) bool { return a.Thread == lost })
	n.Pending = slices.DeleteFunc(n.Pending, func(p Effect) bool { return p.By == lost.Platform && p.Thread != nil && *p.Thread == lost })
	if n.Asking != nil && n.Asking.Request.Thread == lost {
		n.Asking = nil
	}
	heard := func(v Voice) bool { return !v.Silent }
	if n.Busy() && !slices.ContainsFunc(n.Threads, heard) {
		n.halt(byLosing)
	}
}
