package session

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Step folds one event into a state. It is a pure function: no clock but the
// event's, no randomness, and the state given is not changed.
func Step(s State, e Event, p Policy) State {
	n := &step{State: s.clone(), policy: p, now: e.At.Truncate(time.Millisecond)}
	switch e.Kind {
	case Asked:
		n.asked(*e.Request)
	case Amended:
		n.amended(*e.Request, e.Before)
	case Ordered:
		n.obey(*e.Request, "")
	case Done:
		n.done(*e.Performed)
	case Broke:
		n.broke(*e.Failed)
	case Moved:
		n.moved(*e.Progress)
	case Taken:
		n.taken()
	case Closed:
		n.closed(e)
	case Vanished:
		n.vanished(*e.Lost)
	case Poisoned:
		n.poisoned(e)
	case Replayed:
		n.replayed(e)
	case Tick: // the clock alone: what follows is below
	}
	n.follow()
	return n.State
}

// step is a state on its way to the next.
type step struct {
	State
	policy Policy
	now    time.Time
}

// clone copies all that Step may write to.
func (s State) clone() State {
	s.Threads = slices.Clone(s.Threads)
	if s.Asking != nil {
		a := *s.Asking
		s.Asking = &a
	}
	s.Pending = slices.Clone(s.Pending)
	s.Waiting = slices.Clone(s.Waiting)
	s.Refused = slices.Clone(s.Refused)
	s.Left = slices.Clone(s.Left)
	if s.Life != nil {
		life := *s.Life
		s.Life = &life
	}
	if s.PR != nil {
		pr := *s.PR
		s.PR = &pr
	}
	if s.Check != nil {
		c := *s.Check
		s.Check = &c
	}
	if s.Turn != nil {
		t := *s.Turn
		t.Requests = slices.Clone(t.Requests)
		if t.Outcome != nil {
			o := *t.Outcome
			t.Outcome = &o
		}
		s.Turn = &t
	}
	return s
}

// effectID derives an id from the session and a cause. Its shape is a UUID of
// version 4, because some platforms accept a client's id only in that shape.
func effectID(id ID, cause ...string) string {
	sum := sha256.Sum256([]byte("ship\x00" + string(id) + "\x00" + strings.Join(cause, "\x00")))
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func hash32(parts ...string) uint32 {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return binary.BigEndian.Uint32(sum[:4])
}

// add decides an effect. The cause makes its id: the same cause, the same id,
// and an effect that is pending already is not decided twice.
func (n *step) add(e Effect, cause ...string) {
	e.ID = effectID(n.ID, append(cause, string(e.Kind))...)
	if slices.ContainsFunc(n.Pending, func(p Effect) bool { return p.ID == e.ID }) {
		return
	}
	e.Since, e.Turn = n.now, n.Turns
	n.Pending = append(n.Pending, e)
}

// drop removes an effect and returns it.
func (n *step) drop(id string) (Effect, bool) {
	i := slices.IndexFunc(n.Pending, func(p Effect) bool { return p.ID == id })
	if i < 0 {
		return Effect{}, false
	}
	e := n.Pending[i]
	n.Pending = slices.Delete(n.Pending, i, i+1)
	return e, true
}

// say posts a sentence of ours where r was asked, once.
func (n *step) say(r Request, text string) {
	n.add(Effect{Kind: Say, By: r.Thread.Platform, Thread: &r.Thread, Text: text, Ref: r.Ref},
		"request", r.ID)
}

// deny says that something will not be done.
func (n *step) deny(r Request, text string) {
	n.add(Effect{Kind: Say, By: r.Thread.Platform, Thread: &r.Thread, Text: text, Ref: r.Ref, Refusal: true},
		"request", r.ID)
}

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

// voice makes the session speak in a thread too.
func (n *step) voice(r Request, talks bool) {
	v, _ := n.meet(r.Thread)
	if v == nil {
		return
	}
	v.Talks, v.Silent = talks, false
	heard := r.Verb == Instruct || r.Verb == Finish || r.Verb == Retry // the agent gets to see what came before
	if v.Talks && heard && r.At.After(v.Heard) {
		v.Heard = r.At
	}
}

// meet finds a thread among those that the session speaks in, or adds it; nil:
// there are too many.
func (n *step) meet(t Thread) (v *Voice, added bool) {
	i := slices.IndexFunc(n.Threads, func(v Voice) bool { return v.Thread == t })
	if i < 0 && len(n.Threads) < maxVoices {
		n.Threads = append(n.Threads, Voice{Thread: t})
		i, added = len(n.Threads)-1, true
	}
	if i < 0 {
		return nil, false
	}
	return &n.Threads[i], added
}

// watch makes the session show its state in a thread that nobody speaks with it
// in.
func (n *step) watch(t Thread) {
	if v, added := n.meet(t); added {
		v.Silent = true
	}
}

// branchName is unique by construction: the session's own id is in it, and how
// many pull requests it had before.
func branchName(title string, past int, id ID) string {
	slug := make([]byte, 0, 32)
	for _, c := range []byte(strings.ToLower(title)) {
		word := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if word {
			slug = append(slug, c)
		} else if len(slug) > 0 && slug[len(slug)-1] != '-' {
			slug = append(slug, '-')
		}
		if len(slug) == 32 {
			break
		}
	}
	text := strings.Trim(string(slug), "-")
	if text == "" {
		text = "work"
	}
	if past > 0 {
		text += "-" + strconv.Itoa(past+1)
	}
	return "ship/" + text + "-" + strings.ReplaceAll(string(id), ".", "-")
}

// BranchOf tells whether a branch name belongs to the session of this id.
func BranchOf(branch string, id ID) bool {
	return strings.HasPrefix(branch, "ship/") &&
		strings.HasSuffix(branch, "-"+strings.ReplaceAll(string(id), ".", "-"))
}

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
	a := Admitted{Context: firstNonEmpty(context, n.Turn.Context)}
	for i, last := range n.Turn.Requests {
		last.ID, last.Thread, last.Ref, last.At = r.ID, r.Thread, r.Ref, r.At
		if i == 0 {
			last.By, last.Model, last.Said = r.By, firstNonEmpty(r.Model, last.Model), r.ID+".again0"
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

// taken: the last owner vanished. It may be frozen in the middle of a request
// and wake later, so what it doubles is looked for after that.
func (n *step) taken() {
	for _, v := range n.Threads {
		n.add(Effect{Kind: Sweep, By: v.Platform, Thread: &v.Thread, Check: n.Check, Due: n.now.Add(sweepAfter)},
			"sweep", v.Key, n.now.UTC().Format(time.RFC3339))
	}
}

// closed: a pull request was closed or merged. Unless it is one of the past,
// nobody waits for the work. Another repository has pull requests of the same
// numbers, and whoever may write there can name a branch as this session's.
func (n *step) closed(e Event) {
	if n.PR == nil || e.PR != 0 && e.PR != n.PR.Number || e.Key != "" && n.PR.Key != "" && e.Key != n.PR.Key {
		return
	}
	n.dismiss("The pull request was closed")
	n.Closed = true
	if n.Busy() {
		n.halt(byClosing)
		return
	}
	n.discard()
}

func (n *step) poisoned(e Event) {
	if e.Request != nil {
		n.deny(*e.Request, "Something in that request makes me fail again and again, so I put it aside. Please ask in other words; whoever runs me finds the cause in `ship deliveries`.")
	}
}
