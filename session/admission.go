package session

import "slices"

// asked: somebody asked something. Who that is, and what about, only the
// platform knows.
func (n *step) asked(r Request) {
	if n.Forward != "" {
		n.forward(r)
		return
	}
	if r.Early {
		n.meet(r.Thread)
		n.acknowledge(r)
	}
	if n.answered(r) {
		return
	}
	n.admit(r)
}

func (n *step) admit(r Request) {
	n.add(Effect{Kind: Admit, By: r.Thread.Platform, Thread: &r.Thread, Request: &r}, "request", r.ID)
}

func (n *step) forward(r Request) {
	n.add(Effect{Kind: Forward, By: Self, Request: &r, To: n.Forward}, "request", r.ID)
}

func (n *step) admitted(asked Request, a Admission) {
	r := asked
	if a.By.Login != "" {
		r.By = a.By
	}
	if !r.Inline {
		r.Quote = a.Quote
	}
	switch {
	case a.Void:
	case a.Forward != "" && a.Forward != n.ID:
		n.Forward = a.Forward
		n.forward(r)
	case a.Refusal != "":
		n.refuse(r, a)
	case a.Note != "":
		n.say(r, a.Note)
	case a.Question != nil:
		n.doubt(asked, *a.Question)
	default:
		n.Refused = slices.DeleteFunc(n.Refused, func(login string) bool { return login == r.By.Login })
		if !r.Early && r.Verb != Withdraw {
			n.acknowledge(r)
		}
		n.learn(r, a)
		n.obey(r, a.Context)
	}
}

// refuse says no once per person, and every time when it is the thing that
// cannot be done, or when the request was acknowledged before: who was told
// that it was seen waits for what comes of it.
func (n *step) refuse(r Request, a Admission) {
	if a.Stranger && !r.Early {
		if slices.Contains(n.Refused, r.By.Login) {
			return
		}
		n.Refused = append(n.Refused, r.By.Login)
		if len(n.Refused) > maxRefused {
			n.Refused = slices.Delete(n.Refused, 0, 1)
		}
	}
	n.deny(r, a.Refusal)
}

func (n *step) acknowledge(r Request) {
	n.add(Effect{Kind: Acknowledge, By: r.Thread.Platform, Thread: &r.Thread, Ref: r.Ref, Request: &Request{Verb: r.Verb}},
		"request", r.ID)
}

// learn takes over what the platform said of the thread.
func (n *step) learn(r Request, a Admission) {
	n.voice(r, a.Talks)
	for _, link := range a.Links {
		n.watch(link)
	}
	if a.Repo.Key != "" {
		n.Repo = a.Repo
	}
	if a.Title != "" {
		n.Title = a.Title
	}
	if a.Origin != nil {
		n.Origin = a.Origin
	}
	if a.Today != nil {
		n.Today = a.Today
	}
	n.leave()
	if a.Base != "" && n.PR == nil {
		n.Base = a.Base
	}
	if a.PR != nil {
		n.PR, n.Branch, n.Closed = a.PR, a.Branch, false
	}
	if a.Head != "" && !n.Busy() {
		n.Head = a.Head
	}
	if n.Branch == "" && n.Repo.Key != "" {
		n.Branch = branchName(n.Title, n.Past, n.ID)
	}
}

// leave lets go of a pull request that was closed: its branch is not touched
// again.
func (n *step) leave() {
	if !n.Closed || n.Busy() {
		return
	}
	n.Closed, n.PR, n.Head, n.Check = false, nil, "", nil
	n.Past++
	n.Branch = branchName(n.Title, n.Past, n.ID)
}
