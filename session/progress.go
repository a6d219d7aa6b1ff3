package session

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// byClosing is who stops a turn when its pull request is closed: nobody can be
// called that. byLosing is when nobody can be told any more.
const (
	byClosing = "(closed)"
	byLosing  = "(gone)"
)

// begin starts a turn.
func (n *step) begin(a Admitted) {
	a, over := n.answerBudget(a)
	if over {
		return
	}
	n.leave()
	var question *Question
	if n.Turn != nil && n.Turn.Outcome != nil && n.Turn.Outcome.Limit == "" { // that one is ours
		question = n.Turn.Outcome.Question
	}
	model, problem := n.policy.choose(cmp.Or(a.Model, n.Model))
	if problem != "" {
		model, _ = n.policy.choose("") // a model that was taken off the list since
	}
	n.Turns++
	n.Turn = &Turn{
		N: n.Turns, Stage: Preparing, Requests: append([]Request{a.Request}, a.More...), Context: a.Context,
		Model: model, Budget: n.allowed(a.BudgetUSD), Started: n.now, Deadline: n.now.Add(n.policy.TurnTimeout),
		Finish: a.Verb == Finish, Asked: question, PastLimit: a.PastLimit, Resumed: a.Resumed,
	}
	n.Payer = n.Turn.Payer()
	if a.Branch != "" && n.PR == nil && n.Head == "" {
		n.Base = a.Branch
	}
	if l := n.reached(n.Payer, a.PastLimit); l != "" {
		n.announce(Begin)
		n.end(n.pauseOutcome(Outcome{Ending: Spent, Limit: l}))
		return
	}
	n.prepare()
	n.announce(Begin)
	if n.PR != nil && n.Head != "" {
		n.check(CheckState{SHA: n.Head})
	}
}

// announce tells of a turn's beginning or end where a message of its own is
// due for that.
func (n *step) announce(k EffectKind) {
	for _, v := range n.Threads {
		if v.Talks {
			n.add(Effect{Kind: k, By: v.Platform, Thread: &v.Thread}, n.cause(v.Key)...)
		}
	}
}

// cause names a moment of the running turn, for effect ids.
func (n *step) cause(parts ...string) []string {
	return append([]string{"turn", strconv.Itoa(n.Turn.N)}, parts...)
}

func (n *step) prepare() {
	n.Turn.Prepares++
	n.Turn.Stage = Preparing
	n.add(Effect{Kind: Prepare, By: Worker}, n.cause(strconv.Itoa(n.Turn.Prepares))...)
}

func (n *step) run() {
	n.Turn.Legs++
	n.Turn.Stage = Running
	n.add(Effect{Kind: Run, By: Worker}, n.cause(strconv.Itoa(n.Turn.Prepares), strconv.Itoa(n.Turn.Legs))...)
}

func (n *step) publish() {
	n.Turn.Stage = Publishing
	n.Turn.Progress.Doing = ""
	n.add(Effect{Kind: Publish, By: Worker}, n.cause()...)
}

// check wants the check run of a commit in some state. One effect per commit
// and conclusion: a repeat changes nothing.
func (n *step) check(c CheckState) {
	if n.Check != nil && n.Check.SHA == c.SHA {
		c.Ref = n.Check.Ref
	}
	n.add(Effect{Kind: Check, By: n.Repo.Platform, Check: &c}, n.cause(c.SHA, c.Conclusion)...)
	n.Check = &c
}

// done: an effect was performed.
func (n *step) done(p Performed) {
	e, ok := n.drop(p.Effect)
	if !ok {
		return // told twice
	}
	if p.Voice != "" && e.Thread != nil {
		n.shown(*e.Thread, Performed{Ref: p.Voice, Shown: p.Shown})
	}
	switch e.Kind {
	case Admit:
		if p.Admission != nil {
			n.admitted(*e.Request, *p.Admission)
		}
	case Report:
		n.shown(*e.Thread, p)
	case Check:
		if n.Check != nil && n.Check.SHA == e.Check.SHA {
			n.Check.Ref = p.Ref
		}
	case MarkReady:
		n.readied(e, p)
	case Discard:
		n.giveUpBox()
	case Tend:
		n.tended(p.Tended)
	case Prepare, Run, Publish, Open:
		n.advance(e, p)
	case Sweep:
		n.swept(*e.Thread)
	case Acknowledge, Say, Ask, Reply, Begin, Answer, Forward, Close: // nothing else follows
	}
}

// swept: a frozen owner has surely woken or died by now. It may have written
// old news over ours, so what is told is told again.
func (n *step) swept(t Thread) {
	for i := range n.Threads {
		if n.Threads[i].Thread == t {
			n.Threads[i].Shown = ""
		}
	}
	if c := n.Check; c != nil && n.Turn != nil {
		n.add(Effect{Kind: Check, By: n.Repo.Platform, Check: c, Attempts: 1}, n.cause("swept", c.SHA, c.Conclusion)...)
	}
}

// advance moves the turn on.
func (n *step) advance(e Effect, p Performed) {
	if n.Turn == nil {
		return
	}
	switch {
	case e.Kind == Prepare && p.Prepared != nil:
		n.prepared(*p.Prepared)
	case e.Kind == Run && p.Turn != nil:
		n.exhibit(p.Preview)
		n.ran(*p.Turn)
	case e.Kind == Publish && p.Published != nil:
		n.published(*p.Published)
	case e.Kind == Open:
		if p.PR != nil {
			n.PR = p.PR
		}
		if p.Thread != nil {
			n.voice(Request{Thread: *p.Thread}, false)
		}
		n.finish()
	}
}

func (n *step) prepared(p Prepared) {
	t := n.Turn
	if p.Box != n.Box {
		n.giveUpBox()
	}
	n.enter(p)
	t.Fresh, t.Saved = p.Fresh, p.Saved
	n.lost(p.Replaced)
	t.Progress.Place, t.Progress.Doing = 0, ""
	if t.Start == "" {
		t.Start, t.Deadline = p.Head, n.now.Add(n.policy.TurnTimeout)
	}
	if t.Stopping != "" { // publishing finds nothing, and lets go of the place
		t.Outcome = &Outcome{Ending: Stopped, Say: n.stopped()}
		n.publish()
		return
	}
	if n.PR != nil && p.Head != "" && p.Head != n.Head {
		n.supersede(p.Head)
		n.check(CheckState{SHA: p.Head})
		n.Head = p.Head
	}
	n.run()
}

func (n *step) stopped() string {
	switch n.Turn.Stopping {
	case byClosing:
		return "The pull request was closed, so I stopped."
	case byLosing:
		return "The place where this was asked is closed to me now, so I stopped."
	}
	return fmt.Sprintf("Stopped by %s. `/ship retry` starts it again.", printable(n.Turn.Stopping))
}

// ran: the agent's part is over, one way or another. What it left is kept.
func (n *step) ran(o Outcome) {
	t := n.Turn
	t.Outcome = n.sum(o)
	t.Progress.Usage = t.Outcome.Usage
	n.recordToday(t.Outcome)
	late := o.Ending == Completed && o.Served < len(t.Requests) && t.Stopping == "" && t.Legs < maxLegs
	if late {
		n.run()
		return
	}
	if o.Ending == Stopped && t.Stopping != "" { // who it was, the agent cannot know
		t.Outcome.Say = n.stopped()
	}
	n.publish()
}

// sum adds an earlier leg's commands to an outcome. Usage is counted by turn
// already.
func (n *step) sum(o Outcome) *Outcome {
	if before := n.Turn.Outcome; before != nil {
		o.Commands = append(slices.Clone(before.Commands), o.Commands...)
		if len(o.Commands) > 20 {
			o.Commands = o.Commands[len(o.Commands)-20:]
		}
	}
	return &o
}

func (n *step) published(p Published) {
	t := n.Turn
	t.Changed, t.Files = p.Changed, p.Files
	if p.Left != "" {
		t.Outcome = t.crashed(p.Left)
	}
	if p.Head != "" && p.Head != n.Head {
		n.supersede(p.Head)
		n.Head = p.Head
	}
	if n.PR == nil && !n.Closed && p.Head != "" && p.Files > 0 {
		t.Stage = Opening
		n.add(Effect{Kind: Open, By: n.Repo.Platform}, n.cause()...)
		return
	}
	n.finish()
}

// supersede settles the check of a commit that is the head no longer.
func (n *step) supersede(by string) {
	c := n.Check
	if c == nil || c.SHA == by || c.Conclusion != "" {
		return
	}
	n.check(CheckState{
		SHA: c.SHA, Conclusion: "neutral", Title: "Superseded",
		Summary: "The work went on at " + by + ".",
	})
}

// end finishes a turn that never came to publishing. Whatever an earlier run of
// it achieved is lost.
func (n *step) end(o Outcome) {
	n.Turn.Outcome = &o
	n.finish()
}

// finish settles everything that a turn has open.
func (n *step) finish() {
	t := n.Turn
	t.Stage, t.Finished = Ended, n.now
	t.Took = int(t.Finished.Sub(t.Started).Round(time.Second).Seconds())
	if t.Prepares > 0 { // else it has not touched it
		n.leaveBox()
	}
	t.Progress = Progress{Todos: t.Progress.Todos, Steps: t.Progress.Steps, Usage: t.Outcome.Usage}
	n.Spent = n.Spent.Add(t.Outcome.Usage)
	if n.Head != "" && n.PR != nil {
		n.check(CheckState{SHA: n.Head, Conclusion: conclusion(*t.Outcome)})
	}
	n.add(Effect{Kind: Close, By: Worker, Text: strconv.Itoa(t.N), Stay: n.stay()}, n.cause()...)
	n.replies()
	n.announce(Answer)
	if t.Finish && t.Stopping == "" && t.Outcome.succeeded() && n.PR != nil && n.PR.Draft {
		n.add(Effect{Kind: MarkReady, By: n.Repo.Platform}, n.cause()...)
	}
	if n.Closed {
		n.discard()
	}
}

// replies answers in place those who asked in place.
func (n *step) replies() {
	for _, r := range n.Turn.Requests {
		if r.Inline && r.Ref != "" {
			n.add(Effect{Kind: Reply, By: r.Thread.Platform, Thread: &r.Thread, Ref: r.Ref, Text: n.short()},
				"request", r.ID)
		}
	}
}

// short is the turn's end in a sentence or two.
func (n *step) short() string {
	t := n.Turn
	if t.Outcome.Ending != Completed {
		if q := t.Outcome.Asks(); q != nil {
			return q.Text
		}
		return t.Outcome.Say
	}
	answer := strings.TrimSpace(t.Outcome.Answer)
	if len(answer) > 1500 {
		answer = strings.ToValidUTF8(answer[:1500], "") + "…"
	}
	if !t.Changed {
		return cmp.Or(answer, "I looked at this and changed nothing.")
	}
	if len(n.Head) >= 7 {
		return fmt.Sprintf("Done in %s. %s", n.Head[:7], answer)
	}
	return answer
}

// succeeded: there is nothing left to do, not even to answer.
func (o Outcome) succeeded() bool { return o.Ending == Completed && o.Question == nil }

func conclusion(o Outcome) string {
	if o.Question != nil {
		return "neutral"
	}
	switch o.Ending {
	case Completed:
		return "success"
	case Stopped:
		return "cancelled"
	case TimedOut:
		return "timed_out"
	default:
		return "failure"
	}
}

func (n *step) readied(e Effect, p Performed) {
	if n.PR != nil {
		n.PR.Draft = false
	}
	if p.PR != nil {
		n.PR = p.PR
	}
	if e.Request != nil {
		n.say(*e.Request, "The pull request is marked ready for review.")
	}
}

// moved takes over how far a running effect is.
func (n *step) moved(p Progress) {
	if !n.Busy() || (n.Turn.Stage != Preparing && n.Turn.Stage != Running) {
		return
	}
	if p.Conversation != "" {
		n.Conversation = p.Conversation
	}
	n.active(p)
	n.exhibit(p.Preview)
	if p.Today != nil {
		n.Today = p.Today
	}
	p.Conversation, p.Active, p.Ends, p.Preview, p.Today = "", time.Time{}, time.Time{}, nil, nil
	if len(p.Todos) == 0 { // the agent hears other words, or another box is prepared
		p.Todos = n.Turn.Progress.Todos
	}
	if len(p.Steps) == 0 && n.Turn.Stage == Preparing { // what was done in a box that was lost
		p.Steps = n.Turn.Progress.Steps
	}
	if p.Usage == (Usage{}) { // while another box is prepared
		p.Usage = n.Turn.Progress.Usage
	}
	n.Turn.Progress = p
}

// exhibit takes over what the box shows, if that is known.
func (n *step) exhibit(p *Preview) {
	switch {
	case p == nil:
	case p.Port == 0:
		n.Preview = nil
	default:
		n.Preview = p
	}
}
