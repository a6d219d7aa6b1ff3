package session

import (
	"time"

	"ship/sandbox/lifecycle"
)

// StateVersion is the newest state format that this release reads and writes.
const StateVersion = 1

// State is all that is known of a session. It is small when the session is
// idle: what only matters during a turn is dropped at the turn's end.
type State struct {
	V  int `json:"v"`
	ID ID  `json:"id"`
	// Forward: this thread's conversation lives in another session.
	Forward ID `json:"fw,omitempty"`
	// Threads where the session is spoken with; the first is where it began.
	Threads []Voice `json:"th,omitempty"`
	Repo    Repo    `json:"rp,omitzero"`
	Title   string  `json:"ti,omitempty"`
	Origin  *Origin `json:"or,omitempty"`
	// Base is the branch that the pull request targets.
	Base string `json:"ba,omitempty"`
	// Branch that the work goes to, and Head, its commit on the remote.
	Branch string       `json:"br,omitempty"`
	Head   string       `json:"hd,omitempty"`
	PR     *PullRequest `json:"pr,omitempty"`
	// Closed: the pull request was closed or merged, and Past counts those
	// before it. What comes next has a branch and a pull request of its own.
	Closed bool `json:"cd,omitempty"`
	Past   int  `json:"pa,omitempty"`
	// Model and Budget as set by a person; empty and zero: the defaults.
	Model  string  `json:"mo,omitempty"`
	Budget float64 `json:"bu,omitempty"`
	// Box that the session has, and Life, what is known of it. There is no one
	// without the other.
	Box  string         `json:"bx,omitempty"`
	Life *lifecycle.Box `json:"li,omitempty"`
	// Site is whose list has that box: a provider, and a machine where each has
	// boxes of its own. Empty: an earlier release made it.
	Site string `json:"si,omitempty"`
	// Unpausable: the provider said that it cannot pause that box.
	Unpausable bool `json:"np,omitempty"`
	// Preview is a server in that box; nil: there is none.
	Preview *Preview `json:"pv,omitempty"`
	// Left are the last boxes that were given up. One that lives on, on the machine
	// of another worker, must not be taken for the session's again.
	Left []string `json:"lf,omitempty"`
	// Conversation is the agent's own session id in that box.
	Conversation string `json:"cv,omitempty"`
	// Turn is the running one, or the last one.
	Turn *Turn `json:"tu,omitempty"`
	// Turns so far.
	Turns int `json:"n,omitempty"`
	// Waiting are the admitted requests that start a turn when the running one
	// has ended.
	Waiting []Admitted `json:"wa,omitempty"`
	// Asking is the request that waits for the answer to a question.
	Asking *Asking `json:"as,omitempty"`
	// Refused are the logins that got their one refusal.
	Refused []string `json:"no,omitempty"`
	// Check is the check run that we own on Head.
	Check *CheckState `json:"ck,omitempty"`
	// Pending are the effects that are decided and not yet known to be done.
	Pending []Effect `json:"pe,omitempty"`
	// Spent over all turns, and by boxes between them.
	Spent Usage `json:"sp,omitzero"`
	// BoxSeconds is how long boxes ran, in turns and between them, up to Metered;
	// zero: no box runs.
	BoxSeconds int       `json:"bs,omitempty"`
	Metered    time.Time `json:"me,omitzero"`
	// Payer of the last turn pays for its box until the next.
	Payer string `json:"py,omitempty"`
	// Today is known while a turn is at work or is told of.
	Today *Today `json:"td,omitempty"`
	// Warned is which budgets of a day people were warned of here.
	Warned *Warned `json:"hb,omitempty"`
}

// Warned names budgets of a day: of payers, or of all.
type Warned struct {
	Day string   `json:"d"`
	Of  []string `json:"o"`
}

// Voice is a thread with what we said last in its one status comment, or in what
// takes the place of that.
type Voice struct {
	Thread
	// Talks: see Admission.
	Talks bool `json:"t,omitempty"`
	// Silent: the state is shown there and that is all. See Admission.Links.
	Silent bool `json:"si,omitempty"`
	// Heard is until when what is said there was read along.
	Heard time.Time `json:"h,omitzero"`
	// Stopped is when somebody last said stop there, by the platform's clock.
	Stopped time.Time `json:"so,omitzero"`
	// Ref is the platform's id of the status comment.
	Ref string `json:"r,omitempty"`
	// Shown is the digest of what it shows, and At when it was written.
	Shown string    `json:"s,omitempty"`
	At    time.Time `json:"a,omitzero"`
}

// Asking is an open question, and the request that waits for its answer, as it
// was before it was admitted.
type Asking struct {
	Request  Request  `json:"rq"`
	Question Question `json:"qu"`
}

// Admitted is a request that may be carried out, with what it is about. More
// are those that a turn which is retried had been given besides.
type Admitted struct {
	Request
	Context string    `json:"cx,omitempty"`
	More    []Request `json:"mr,omitempty"`
	// PastLimit is what it may go beyond, for somebody said so, and BudgetUSD
	// how far; zero: as far as usual. Resumed: its work was begun before.
	PastLimit Limit   `json:"ps,omitempty"`
	BudgetUSD float64 `json:"pb,omitempty"`
	Resumed   bool    `json:"rs,omitempty"`
	// Amid: it was said while a turn was at work, so it answers nothing that this
	// turn's end asks.
	Amid bool `json:"am,omitempty"`
}

// Stage of a turn.
type Stage string

// The stages, in order.
const (
	Preparing  Stage = "preparing"
	Running    Stage = "running"
	Publishing Stage = "publishing"
	Opening    Stage = "opening"
	Ended      Stage = "ended"
)

// Turn is one piece of work by the agent: from a request to an answer.
type Turn struct {
	N     int   `json:"n"`
	Stage Stage `json:"s"`
	// Requests that it serves; the first started it, the others steered it.
	Requests []Request `json:"rq,omitempty"`
	// Context is the quoted description of the issue or pull request.
	Context string `json:"cx,omitempty"`
	Model   string `json:"mo,omitempty"`
	// Budget in USD that this turn may spend.
	Budget  float64   `json:"bu,omitempty"`
	Started time.Time `json:"st,omitzero"`
	// Deadline ends it, whatever happens in between. Waiting for a place does not
	// count: it is moved when the first box is ready.
	Deadline time.Time `json:"dl,omitzero"`
	Finished time.Time `json:"fi,omitzero"`
	// Took is how many seconds it lasted.
	Took int `json:"tk,omitempty"`
	// Stopping: a person said stop; By is who.
	Stopping string   `json:"sg,omitempty"`
	Fresh    bool     `json:"fr,omitempty"`
	Start    string   `json:"sh,omitempty"` // commit that it began at
	Progress Progress `json:"pg,omitzero"`
	Outcome  *Outcome `json:"oc,omitempty"`
	Changed  bool     `json:"ch,omitempty"`
	Files    int      `json:"fs,omitempty"`
	// Saved is from when the work is that the turn found in its box, as an
	// earlier one was lost; see Prepared.
	Saved time.Time `json:"sv,omitzero"`
	// Prepares counts the boxes that this turn has asked for.
	Prepares int `json:"np,omitempty"`
	// Legs counts the runs: one more for requests that came too late.
	Legs int `json:"nl,omitempty"`
	// Forgotten: it succeeded, and its requests were too long to be kept.
	Forgotten bool `json:"fg,omitempty"`
	// Told: every thread shows the end, and all was dropped but what a status
	// line says and a retry needs.
	Told bool `json:"tl,omitempty"`
	// Asked is what the turn before ended with, and this one answers.
	Asked *Question `json:"aq,omitempty"`
	// PastLimit and Resumed: see Admitted.
	PastLimit Limit `json:"ps,omitempty"`
	Resumed   bool  `json:"rs,omitempty"`
	// Warned: people heard that these budgets are nearly used up.
	Warned []Limit `json:"wd,omitempty"`
	// Box is for how many seconds a box ran for it, up to State.Metered.
	Box int `json:"bx,omitempty"`
	// Finish: mark the pull request ready when it succeeds.
	Finish bool `json:"fn,omitempty"`
}
