package session

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// obey carries out what an admitted request says.
func (n *step) obey(r Request, context string) {
	if n.overtaken(r) {
		n.say(r, "You said stop after you had asked for this, and the one reached me before the other, so I left it alone. Ask again if it is still wanted.")
		return
	}
	switch r.Verb {
	case Instruct, Finish:
		n.instruct(Admitted{Request: r, Context: context})
	case Retry:
		n.retry(r, context)
	case Stop:
		n.stop(r)
	case Withdraw:
		n.withdraw(r)
	case Status:
		n.say(r, n.policy.Status(r.Thread.Platform, ViewOf(n.State)))
	case Help:
		n.say(r, n.policy.Help(r.Thread.Platform))
	case Model:
		n.setModel(r)
	case Budget:
		n.setBudget(r)
	case Ready:
		n.ready(r)
	case Unclear:
		n.say(r, r.Text)
	default:
		n.say(r, "I did not understand that. `/ship help` lists what I know.")
	}
}

func (n *step) instruct(a Admitted) {
	model, problem := n.policy.choose(a.Model)
	switch {
	case problem != "":
		n.deny(a.Request, problem)
	case n.over():
		n.begin(a)
	case n.steerable(a, model):
		n.Turn.Requests = append(n.Turn.Requests, a.Request)
		if a.Model != "" {
			n.Turn.Model = model
		}
	case len(n.Waiting) >= maxWaiting:
		n.deny(a.Request, "There is too much waiting in this thread already. Ask again when the current turn has ended.")
	default:
		a.Amid = n.Busy()
		n.Waiting = append(n.Waiting, a)
	}
}

// over: the last turn has ended, and its threads were told.
func (n *step) over() bool {
	return n.Turn == nil || n.Turn.Stage == Ended && !n.telling()
}

// steerable: what is asked now can still reach the agent in this turn. A run
// keeps its model, and one that was not begun to finish has not seen what a
// pull request lacks.
func (n *step) steerable(a Admitted, model string) bool {
	t := n.Turn
	switch {
	case t.Stopping != "" || len(t.Requests) >= maxLegs, a.Verb == Finish && !t.Finish:
		return false
	case t.Stage == Running:
		return a.Model == "" || model == t.Model
	}
	return t.Stage == Preparing
}

func (n *step) retry(r Request, context string) {
	switch {
	case n.Busy() && n.Turn.Stopping == "":
		n.say(r, "I'm still at it, so there is nothing to retry yet. `/ship stop` ends it.")
	case n.Turn != nil && n.Turn.Forgotten:
		n.say(r, "The last request was carried out, and it was too long to be kept after that. Please write it again: `/ship …`.")
	case n.Turn == nil || len(n.Turn.Requests) == 0:
		n.say(r, "There is nothing to retry in this thread yet. Tell me what to do with `/ship …`.")
	default:
		n.instruct(n.anew(r, context))
	}
}

// anew is all that the last turn was asked, asked anew by r.
func (n *step) anew(r Request, context string) Admitted {
	a := Admitted{Context: cmp.Or(context, n.Turn.Context)}
	for i, last := range n.Turn.Requests {
		last.ID, last.Thread, last.Ref, last.At = r.ID, r.Thread, r.Ref, r.At
		if i == 0 {
			last.By, last.Model, last.Said = r.By, cmp.Or(r.Model, last.Model), r.ID+".again0"
			a.Request = last
			continue
		}
		last.ID, last.Ref = fmt.Sprintf("%s.again%d", r.ID, i), ""
		a.More = append(a.More, last)
	}
	return a
}

func (n *step) stop(r Request) {
	n.noteStop(r)
	dropped := n.dropQuestion() || len(n.Waiting) > 0 || n.Asking != nil
	n.Asking = nil
	n.dismiss("`" + printable(r.By.Login) + "` said stop")
	switch {
	case n.Busy():
		n.halt(r.By.Login)
	case dropped:
		n.say(r, "Nothing was running. What was waiting is dropped.")
	default:
		n.say(r, "Nothing is running here, so there is nothing to stop.")
	}
}

// dropQuestion lets go of the question that the last turn ended with. Whoever
// says stop does not want to be asked.
func (n *step) dropQuestion() (dropped bool) {
	if n.Busy() || n.Turn == nil || n.Turn.Outcome == nil || n.Turn.Outcome.Question == nil {
		return false
	}
	n.Turn.Outcome.Question = nil
	return true
}

// withdraw ends what runs, because the work was taken away.
func (n *step) withdraw(r Request) {
	n.noteStop(r)
	waited := n.Asking != nil
	n.Asking = nil
	n.dismiss("The work was taken away from me")
	switch {
	case n.Busy():
		n.halt(r.By.Login)
	case waited:
		n.say(r, "The work was taken away from me, so I dropped the question.")
	}
}

// dismiss drops what waits, and tells whoever waits for it.
func (n *step) dismiss(why string) {
	for _, w := range n.Waiting {
		n.say(w.Request, why+" before I began with this, so I dropped it. Ask again if it is still wanted.")
	}
	n.Waiting = nil
}

// halt ends the running turn as soon as its effect in the box has let go, and
// at once when that waits to be tried again.
func (n *step) halt(by string) {
	if n.Turn.Stopping == "" {
		n.Turn.Stopping = by
	}
	for i := range n.Pending {
		if p := &n.Pending[i]; p.Kind == Prepare || p.Kind == Run {
			p.Due = time.Time{}
		}
	}
}

func (n *step) setModel(r Request) {
	model, problem := n.policy.choose(r.Text)
	if problem != "" {
		n.say(r, problem)
		return
	}
	n.Model = model
	n.say(r, fmt.Sprintf("From the next request on, I use `%s` here.", model))
}

func (n *step) setBudget(r Request) {
	usd, err := strconv.ParseFloat(strings.TrimPrefix(r.Text, "$"), 64)
	switch {
	case err != nil || !(usd > 0) || math.IsInf(usd, 0): // not a number is not above zero
		n.say(r, "A budget is a positive amount in USD, such as `/ship budget 5`.")
	case n.policy.MaxBudgetUSD > 0 && usd > n.policy.MaxBudgetUSD:
		n.say(r, fmt.Sprintf("The most that I may spend on one request here is $%.2f. Whoever runs me can raise `limits.max_budget_usd`.", n.policy.MaxBudgetUSD))
	default:
		n.Budget = usd
		n.say(r, fmt.Sprintf("From the next request on, I may spend up to $%.2f on each one here.", usd))
	}
}

func (n *step) ready(r Request) {
	switch {
	case n.PR == nil || n.Closed:
		n.say(r, "There is no open pull request yet that could be marked ready.")
	case !n.PR.Draft:
		n.say(r, "The pull request is ready for review already.")
	default:
		n.add(Effect{Kind: MarkReady, By: n.Repo.Platform, Thread: &r.Thread, Request: &r}, "request", r.ID)
	}
}
