package session

import (
	"time"

	"ship/sandbox/lifecycle"
)

// EventVersion is the newest event format that this release reads and writes.
const EventVersion = 1

// Event is something that happened to a session.
type Event struct {
	// V is the format's version.
	V    int  `json:"v"`
	Kind Kind `json:"k"`
	// Seq is the position in the session's inbox, from 1, without gaps. The
	// store sets it. Zero for events that never were in the inbox.
	Seq int64 `json:"-"`
	// At is when the store accepted it, by the store's clock.
	At time.Time `json:"-"`
	// Delivery is the platform's delivery id, for the log.
	Delivery string `json:"d,omitempty"`

	Request   *Request   `json:"rq,omitempty"` // Asked, Amended
	Before    string     `json:"bf,omitempty"` // Amended: the request's words until then
	Performed *Performed `json:"pf,omitempty"` // Done
	Failed    *Failed    `json:"fl,omitempty"` // Failed
	Progress  *Progress  `json:"pg,omitempty"` // Moved
	Closed    string     `json:"cl,omitempty"` // Closed: why, for the log
	PR        int        `json:"pr,omitempty"` // Closed: the pull request's number; zero: whichever it has
	Lost      *LostBox   `json:"lb,omitempty"` // Vanished
	Key       string     `json:"ky,omitempty"` // Closed: its key, as in PullRequest; empty: not known
	Effect    *Effect    `json:"ef,omitempty"` // Replayed
	Turn      *Turn      `json:"tu,omitempty"` // Replayed: see DeadLetter

	Raw  []byte `json:"-"` // Garbled: what the inbox holds
	Flaw string `json:"-"` // Garbled: why it is no event
}

// Kind of an event.
type Kind string

// What can happen. Asked, Amended, Ordered, Closed, Vanished and Replayed come through the inbox;
// the coordinator makes the others itself, as the results of effects and of the
// clock.
const (
	// Asked: a person asked something. Not yet authorised.
	Asked Kind = "asked"
	// Amended: a person changed the words of a request. They count if the work
	// on it has not begun.
	Amended Kind = "amended"
	// Ordered: the operator asked something, which needs no admission.
	Ordered Kind = "ordered"
	// Closed: the thing that the session is about was closed or merged.
	Closed Kind = "closed"
	// Vanished: the provider does not have the session's box any more, as whoever
	// holds its list against what is on record has found.
	Vanished Kind = "vanished"
	// Replayed: the operator wants an effect that was given up after all.
	Replayed Kind = "replayed"
	// Garbled: the inbox holds what is no event. The store makes it, so that what
	// lies behind is not held up.
	Garbled Kind = "garbled"
	// Done: an effect was performed.
	Done Kind = "done"
	// Broke: performing an effect failed.
	Broke Kind = "broke"
	// Moved: a running effect tells how far it is.
	Moved Kind = "moved"
	// Tick: a time that the state waits for has come.
	Tick Kind = "tick"
	// Taken: the lease was taken over from an owner that did not release it.
	Taken Kind = "taken"
	// Poisoned: a request brought its owners down again and again, and was put
	// aside.
	Poisoned Kind = "poisoned"
)

// LostBox is a box that is on record and that its provider does not have.
type LostBox struct {
	Box string `json:"b"`
	// Since is lifecycle.Box.Since of the record, as it was before the provider
	// was asked. A record that has another by now was changed after that.
	Since time.Time `json:"s"`
}

// Performed is the outcome of an effect: the id and what its kind leads to.
type Performed struct {
	Effect    string     `json:"e"`
	Admission *Admission `json:"ad,omitempty"` // Admit
	Prepared  *Prepared  `json:"pr,omitempty"` // Prepare
	Turn      *Outcome   `json:"tu,omitempty"` // Run
	Preview   *Preview   `json:"pw,omitempty"` // Run: as in Progress
	Published *Published `json:"pu,omitempty"` // Publish
	Tended    *Tended    `json:"te,omitempty"` // Tend
	// PR is what Open found or made, or what MarkReady left.
	PR *PullRequest `json:"pq,omitempty"`
	// Thread is where people speak about the pull request that Open found or
	// made, if they do not do that where the session began.
	Thread *Thread `json:"th,omitempty"`
	// Ref is the platform's id of what was posted (a comment, a check run).
	Ref string `json:"rf,omitempty"`
	// Voice is the new Voice.Ref of the effect's thread, for what is not a Report
	// and put the thread's state there all the same, or elsewhere than it was.
	Voice string `json:"vo,omitempty"`
	// Shown is the digest of the view that a Report put on the platform, or what
	// Voice is about.
	Shown string `json:"sh,omitempty"`
}

// Failed says why an effect could not be performed.
type Failed struct {
	Effect string
	// Say is the plain sentence for people: what happened and what to do.
	Say string
	// Again: worth repeating; After is the earliest time from now.
	Again bool
	After time.Duration
	// Passing: the other side is away, and comes back by itself.
	Passing bool
	// Lost: the box is gone, so another has to be made first.
	Lost bool
	// Gone: the thread is no longer ours to speak in.
	Gone bool
	// Stop: it ended because a person said stop, which is no fault.
	Stop bool
	// Err is the whole chain, for the operator's log.
	Err string
}

// Prepared is a box with the repository at the right commit and the agent up.
type Prepared struct {
	Box string `json:"b"`
	// Head is the commit that the work starts from.
	Head string `json:"h"`
	// Fresh: the box was made for this turn, so the agent remembers nothing.
	Fresh bool `json:"f,omitempty"`
	// Saved is when what is in the working tree of a fresh box was saved from
	// another, which was lost; zero: it is only what is on the branch.
	Saved time.Time `json:"sv,omitzero"`
	// Replaced: the box is in the place of one that could not be used any more,
	// with what only that had.
	Replaced bool `json:"rp,omitempty"`
	// Site as in State.
	Site string `json:"si,omitempty"`
	// Life is what is known of the box, which was probed and waits for its turn.
	Life lifecycle.Box `json:"l,omitzero"`
}

// Tended is what became of a box.
type Tended struct {
	Life lifecycle.Box `json:"l"`
	// Unpausable: see State.
	Unpausable bool `json:"np,omitempty"`
}

// Published is what a push led to.
type Published struct {
	// Head is the commit of the session's branch on the remote; empty when the
	// branch was never pushed.
	Head string `json:"h,omitempty"`
	// Changed says whether this turn brought commits.
	Changed bool `json:"c,omitempty"`
	// Files is how many files differ from the base.
	Files int `json:"f,omitempty"`
	// Left is one plain sentence with what to do next, if not all of the work
	// could be pushed; empty: all was.
	Left string `json:"lf,omitempty"`
}

// Ending is how a turn came to its end.
type Ending string

// The endings of a turn. Only Completed is a success.
const (
	Completed Ending = "completed"
	Stopped   Ending = "stopped"
	// Stuck: the same failing call or the same error again and again.
	Stuck Ending = "stuck"
	// TimedOut: the turn's wall clock.
	TimedOut Ending = "timed out"
	// Stalled: nothing moved for too long.
	Stalled Ending = "stalled"
	// Spent: model calls or money.
	Spent Ending = "spent"
	// Refused: the model or its provider said no for good.
	Refused Ending = "refused"
	// Unreachable: the model did not answer within its retries.
	Unreachable Ending = "unreachable"
	// Crashed: the box or the agent was lost, or something in ship failed.
	Crashed Ending = "crashed"
)

// Outcome of a turn.
type Outcome struct {
	Ending Ending `json:"e"`
	// Say is one plain sentence for people with what to do next; empty when
	// Completed.
	Say string `json:"s,omitempty"`
	// Answer is the agent's last message, at most 16 KiB.
	Answer string `json:"a,omitempty"`
	// Question is what the agent needs to know before it can go on. The answer
	// starts the next turn.
	Question *Question `json:"q,omitempty"`
	Usage    Usage     `json:"u,omitzero"`
	// Limit that the money ran into; empty: none.
	Limit Limit `json:"l,omitempty"`
	// Today as in Progress.
	Today *Today `json:"td,omitempty"`
	// Commands that the agent ran, newest last, for the proof in the pull
	// request. At most 20.
	Commands []string `json:"cm,omitempty"`
	// Served is how many of the turn's requests reached the agent. One that
	// came too late starts another leg.
	Served int `json:"sv,omitempty"`
}

// Asks is the question that an end leaves open, the agent's own or whether to go
// on past a budget; nil: none. It may be called on nil.
func (o *Outcome) Asks() *Question {
	if o == nil || o.Ending != Completed && o.Ending != Spent {
		return nil
	}
	return o.Question
}

// Usage is what a turn cost so far.
type Usage struct {
	Calls  int     `json:"c,omitempty"`
	Input  int     `json:"i,omitempty"`
	Output int     `json:"o,omitempty"`
	USD    float64 `json:"$,omitempty"`
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Calls + v.Calls, u.Input + v.Input, u.Output + v.Output, u.USD + v.USD}
}

// Progress is level-triggered: each report replaces the one before. Losing
// one costs nothing.
type Progress struct {
	Effect string `json:"-"`
	// Place in the queue for a box; zero when not waiting.
	Place int `json:"pl,omitempty"`
	// Doing is what happens now, in a few words.
	Doing string `json:"dg,omitempty"`
	// Todos is the agent's own list.
	Todos []Todo `json:"td,omitempty"`
	// Steps are the last things the agent did, newest last, at most 8.
	Steps []string `json:"st,omitempty"`
	Usage Usage    `json:"u"`
	// Conversation is the agent's own session id, kept for re-attaching.
	Conversation string `json:"cv,omitempty"`
	// Active is when the agent last did real work.
	Active time.Time `json:"ac,omitzero"`
	// Ends is when the provider will end the box, if that is soon.
	Ends time.Time `json:"en,omitzero"`
	// Today is what the turn's person and all have spent by now; nil: not looked.
	Today *Today `json:"dy,omitempty"`
	// Preview is what the agent shows by now; its zero value: nothing any more.
	// nil: what was known of it still holds.
	Preview *Preview `json:"pv,omitempty"`
}

// Preview is a server in the session's box that people may look at.
type Preview struct {
	Port int `json:"p,omitempty"`
	// Since it answers, and Until when its link is good.
	Since time.Time `json:"s,omitzero"`
	Until time.Time `json:"t,omitzero"`
	// URL leads whoever has it to the server.
	URL string `json:"u,omitempty"`
}

// Todo is one entry of the agent's list.
type Todo struct {
	Text string `json:"t"`
	// Status is pending, in_progress, completed or cancelled.
	Status string `json:"s"`
}
