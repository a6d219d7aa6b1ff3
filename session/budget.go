package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limit is a bound on money that work can run into.
type Limit string

// The limits, the narrowest first. Who goes on past one goes on past those
// before it.
const (
	TurnLimit   Limit = "turn"
	PersonLimit Limit = "person"
	DayLimit    Limit = "day"
)

// Reaches tells whether somebody who may go on past l may do so past m.
func (l Limit) Reaches(m Limit) bool {
	order := []Limit{TurnLimit, PersonLimit, DayLimit}
	return slices.Index(order, l) >= slices.Index(order, m)
}

// Today is what was spent on a day of UTC, in USD, and what may be. A limit of
// zero is none.
type Today struct {
	// Day is such as 2026-01-31.
	Day string `json:"d"`
	// Payer is whose Person is: see Request.Payer.
	Payer string `json:"p,omitempty"`
	// Person is what that one has spent, and All what everybody has together.
	Person float64 `json:"u,omitempty"`
	All    float64 `json:"a,omitempty"`
	// PersonMax and AllMax are the limits of that.
	PersonMax float64 `json:"um,omitempty"`
	AllMax    float64 `json:"am,omitempty"`
}

// Reached is the widest limit that is used up; empty: none is.
func (t Today) Reached() Limit {
	switch {
	case t.AllMax > 0 && t.All >= t.AllMax:
		return DayLimit
	case t.PersonMax > 0 && t.Person >= t.PersonMax:
		return PersonLimit
	}
	return ""
}

// warnShare is the share of a budget from which on people are warned.
const warnShare = 0.8

// Payer names whose money a request is spent from: the platform and the login, or
// the account of who has none, written so that a ledger takes it. See ParsePayer.
func (r Request) Payer() string {
	who := r.By.Identity()
	var b strings.Builder
	b.WriteString(r.Thread.Platform + ":")
	for _, c := range []byte(who) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, ".%02x", c)
		}
	}
	if name := b.String(); len(name) <= maxPayer {
		return name
	}
	sum := sha256.Sum256([]byte(who))
	return fmt.Sprintf("%s:..%x", r.Thread.Platform, sum[:16])
}

// maxPayer is what a ledger's accounts have room for.
const maxPayer = 100

// escaped finds the bytes that Payer wrote otherwise.
var escaped = regexp.MustCompile(`\.[0-9a-f]{2}`)

// ParsePayer takes a payer's name apart. A login that was too long for it stays
// a digest.
func ParsePayer(name string) (platform, login string) {
	platform, login, _ = strings.Cut(name, ":")
	if strings.HasPrefix(login, "..") {
		return platform, login
	}
	return platform, escaped.ReplaceAllStringFunc(login, func(s string) string {
		b, err := hex.DecodeString(s[1:])
		if err != nil {
			return s // unreachable: the pattern is hexadecimal
		}
		return string(b)
	})
}

// Payer is whose money a turn spends: who asked for it first;
// empty: nobody whose spending is counted.
func (t Turn) Payer() string {
	if len(t.Requests) == 0 || t.Requests[0].By.Login == "" {
		return ""
	}
	return t.Requests[0].Payer()
}

// budget is what a turn may spend.
func (n *step) budget() float64 { return n.allowed(n.Budget) }

// allowed is what a person wants a turn to spend, as far as they may; for none,
// what is usual.
func (n *step) allowed(usd float64) float64 {
	if usd <= 0 {
		usd = n.Budget
	}
	if usd <= 0 {
		return n.policy.BudgetUSD
	}
	if most := n.policy.MaxBudgetUSD; most > 0 { // it may have been lowered since
		usd = min(usd, most)
	}
	return usd
}

// today is what is known of this day; nil: nothing.
func (n *step) today() *Today {
	if n.Today == nil || n.Today.Day != n.now.UTC().Format(time.DateOnly) {
		return nil
	}
	return n.Today
}

// reached is the limit that keeps a turn of payer from beginning; empty: none is
// known to. The broker enforces all of them in any case.
func (n *step) reached(payer string, past Limit) Limit {
	t := n.today()
	if t == nil {
		return ""
	}
	sum := *t
	if sum.Payer != payer {
		sum.PersonMax = 0 // another's is not known
	}
	l := sum.Reached()
	if l == "" || past != "" && past.Reaches(l) {
		return ""
	}
	return l
}

// warnNearLimits warns, once each, that a budget of the running turn is nearly used up.
func (n *step) warnNearLimits() {
	t := n.Turn
	if !n.Busy() || t.Stopping != "" || t.Stage != Preparing && t.Stage != Running {
		return
	}
	if most := t.Budget; !slices.Contains(t.Warned, TurnLimit) && nearlySpent(t.Progress.Usage.USD, most) {
		t.Warned = append(slices.Clone(t.Warned), TurnLimit)
		n.warnLimit(TurnLimit, fmt.Sprintf("I have spent %s of the %s that this turn may cost.", dollars(t.Progress.Usage.USD), dollars(most)))
	}
	sum := n.today()
	if sum == nil {
		return
	}
	if nearlySpent(sum.Person, sum.PersonMax) && sum.Payer == t.Payer() && !t.PastLimit.Reaches(PersonLimit) && n.firstWarning(sum.Payer) {
		n.warnLimit(PersonLimit, fmt.Sprintf("Whoever asked for this has spent %s of the %s that one person may spend here today.", dollars(sum.Person), dollars(sum.PersonMax)))
	}
	if nearlySpent(sum.All, sum.AllMax) && !t.PastLimit.Reaches(DayLimit) && n.firstWarning(string(DayLimit)) {
		n.warnLimit(DayLimit, fmt.Sprintf("All together have spent %s of the %s for today.", dollars(sum.All), dollars(sum.AllMax)))
	}
}

// nearlySpent: most of it is spent, and not all.
func nearlySpent(spent, most float64) bool {
	return most > 0 && spent >= warnShare*most && spent < most
}

// firstWarning notes that the session was warned today of a budget, and tells
// whether it was not before.
func (n *step) firstWarning(whose string) bool {
	day := n.now.UTC().Format(time.DateOnly)
	if n.Warned == nil || n.Warned.Day != day {
		n.Warned = &Warned{Day: day}
	}
	if slices.Contains(n.Warned.Of, whose) {
		return false
	}
	n.Warned = &Warned{Day: day, Of: append(slices.Clone(n.Warned.Of), whose)}
	return true
}

func (n *step) warnLimit(l Limit, text string) {
	then := " When that is used up, I stop and keep the work."
	if n.policy.Extend {
		then = " When that is used up, I stop, keep the work and ask whether to go on."
	}
	r := n.Turn.Requests[0]
	n.add(Effect{Kind: Say, By: r.Thread.Platform, Thread: &r.Thread, Ref: r.Ref, Text: text + then}, n.cause("near", string(l))...)
}

// pauseOutcome makes the end of a turn that ran into a limit a pause: with the
// question whether to go on, if people may extend budgets.
func (n *step) pauseOutcome(o Outcome) Outcome {
	o.Say = n.usedUp(o.Limit)
	if n.policy.Extend {
		more := dollars(n.budget())
		o.Question = &Question{Text: o.Say + " Shall I go on with " + more + " more?", Choices: []Choice{{Value: goOn + more + " more"}, {Value: leaveIt}}}
		return o
	}
	if o.Limit == TurnLimit {
		o.Say += " `/ship retry` goes on with as much again."
	} else {
		o.Say += " A new day begins at 00:00 UTC; `/ship retry` goes on then."
	}
	return o
}

// What can be chosen when a budget is used up.
const (
	goOn    = "Go on with "
	leaveIt = "Leave it"
)

// usedUp says which budget is used up, and what is kept.
func (n *step) usedUp(l Limit) string {
	t, sum := n.Turn, n.today()
	if sum == nil {
		sum = &Today{}
	}
	kept := " I have not begun."
	if t.Progress.Usage.Calls > 0 || t.Resumed {
		kept = " The work so far is kept."
	}
	switch {
	case l == PersonLimit:
		return fmt.Sprintf("What one person may spend here today%s is used up.", inCommas(sum.PersonMax)) + kept
	case l == DayLimit:
		return fmt.Sprintf("What all together may spend today%s is used up.", inCommas(sum.AllMax)) + kept
	}
	return fmt.Sprintf("The %s that this turn may cost are used up.", dollars(t.Budget)) + kept
}

// inCommas writes an amount as an insertion between commas; zero is nothing.
func inCommas(usd float64) string {
	if usd == 0 {
		return ""
	}
	return ", " + dollars(usd) + ","
}

// dollars writes money as people do: $5, $2.50.
func dollars(usd float64) string {
	return "$" + strings.TrimSuffix(strconv.FormatFloat(usd, 'f', 2, 64), ".00")
}

// Answers to whether to go on, in the words that are offered or in others.
var (
	yesGoOn = regexp.MustCompile(`(?i)^(?:yes|ok(?:ay)?|sure|go on|go ahead|continue|extend)(?:[, ]+(?:please|go on|go ahead))?(?:(?: with| by)? \$?([0-9]{1,6}(?:\.[0-9]{1,2})?)(?: ?\$| ?usd| dollars)?(?: more)?)?[.!]*$`)
	noLeave = regexp.MustCompile(`(?i)^(?:no|no,? thanks|leave it(?: as it is)?|don't)[.!]*$`)
)

// answerBudget takes a request for the answer to whether to go on past a budget,
// if that is what was asked last. Going on is the last turn's requests anew; with
// leaving it, nothing is left to be begun. What is neither is work of its own.
func (n *step) answerBudget(a Admitted) (next Admitted, over bool) {
	o := n.openBudgetQuestion()
	text := strings.TrimSpace(a.Text)
	if o == nil || a.Verb != Instruct || a.Said != "" || len(a.More) > 0 {
		return a, false
	}
	if !a.Amid && noLeave.MatchString(text) {
		o.Question = nil
		n.say(a.Request, "All right, I leave it there. `/ship retry` takes it up again.")
		return a, true
	}
	m := yesGoOn.FindStringSubmatch(text)
	if m == nil || a.Amid {
		return n.joinUnbegun(a, *o), false
	}
	limit, began := o.Limit, o.Usage.Calls > 0 || n.Turn.Resumed
	a = n.anew(a.Request, a.Context)
	a.PastLimit, a.Resumed = limit, began
	if usd, err := strconv.ParseFloat(m[1], 64); err == nil && usd > 0 {
		a.BudgetUSD = usd
	}
	return a, false
}

// openBudgetQuestion is the outcome that asks whether to go on past a budget;
// nil: nothing asks that.
func (n *step) openBudgetQuestion() *Outcome {
	if n.Busy() || n.Turn == nil || n.Turn.Outcome == nil || n.Turn.Outcome.Limit == "" || n.Turn.Outcome.Question == nil {
		return nil
	}
	return n.Turn.Outcome
}

// joinUnbegun puts a request behind those that wait for a day's budget and were not
// begun: going on means all of them.
func (n *step) joinUnbegun(a Admitted, o Outcome) Admitted {
	if o.Usage.Calls > 0 || n.Turn.Resumed || len(n.Turn.Requests) == 0 || len(n.Turn.Requests) >= maxLegs {
		return a
	}
	own := a.Request
	own.ID, own.Ref = fmt.Sprintf("%s.again%d", own.ID, len(n.Turn.Requests)), ""
	all := n.anew(a.Request, cmp.Or(a.Context, n.Turn.Context))
	all.More = append(all.More, own)
	return all
}

// recordToday takes over what an outcome says of the day. Money that ran into a
// limit makes it a pause.
func (n *step) recordToday(o *Outcome) {
	if o.Today != nil {
		n.Today, o.Today = o.Today, nil
	}
	if o.Ending == Spent && o.Limit != "" && n.Turn.Stopping == "" {
		*o = n.pauseOutcome(*o)
	}
}
