package session

import (
	"context"
	"errors"
	"time"
)

// EffectKind names what is to be done.
type EffectKind string

// The effects. A kind is performed either by a platform's integration or by
// the worker that owns boxes; Effect.By says which.
const (
	// Admit asks the platform who the requester is and what it is about.
	Admit EffectKind = "admit"
	// Acknowledge shows that a request was seen (👀). Of the request it has the
	// verb only.
	Acknowledge EffectKind = "acknowledge"
	// Say posts Text in Thread, as a new message, once.
	Say EffectKind = "say"
	// Ask posts the question Text with Choices in Thread, once.
	Ask EffectKind = "ask"
	// Begin shows in Thread, and on what it is about, that a turn has begun.
	Begin EffectKind = "begin"
	// Answer posts the turn's end in Thread, as a new message, once.
	Answer EffectKind = "answer"
	// Reply answers the request Ref in place (an inline review reply), once.
	Reply EffectKind = "reply"
	// Report overwrites the one status comment of Thread with the State's view.
	Report EffectKind = "report"
	// Forward appends Request to the inbox of the session To.
	Forward EffectKind = "forward"
	// Prepare makes the box and checks the repository out.
	Prepare EffectKind = "prepare"
	// Run runs the agent's turn.
	Run EffectKind = "run"
	// Publish commits and pushes.
	Publish EffectKind = "publish"
	// Open finds or makes the draft pull request.
	Open EffectKind = "open"
	// MarkReady takes the draft mark off the pull request.
	MarkReady EffectKind = "ready"
	// Check puts the check run of commit SHA into the state CheckState.
	Check EffectKind = "check"
	// Close ends what the turn Text may do outside its box, and gives its place
	// in the queue for boxes to the next.
	Close EffectKind = "close"
	// Tend does what is due for the box Text that no turn is at work in: it
	// pauses it, keeps it, or destroys it.
	Tend EffectKind = "tend"
	// Discard destroys the session's box, because nobody waits for what is in it.
	Discard EffectKind = "discard"
	// Sweep removes what a frozen owner may have posted twice.
	Sweep EffectKind = "sweep"
)

// Worker is Effect.By for what is done in boxes, and Self for what the
// coordinator does with its own store.
const (
	Worker = "worker"
	Self   = "session"
)

// Effect is something to be done once in the world outside. Its ID is fixed
// when it is decided; whoever performs it makes a repeat harmless.
type Effect struct {
	// ID is derived from the session and the cause: the same cause yields the
	// same id, even after a restore from an old backup.
	ID   string     `json:"id"`
	Kind EffectKind `json:"k"`
	// By is a platform's name, Worker or Self.
	By string `json:"by"`
	// Epoch of the lease under which it was decided.
	Epoch int64 `json:"ep"`
	// Turn is the session's newest when it was decided; zero: none had begun.
	Turn int `json:"tn,omitempty"`
	// Attempts so far; Due is when it may be performed next.
	Attempts int       `json:"at,omitempty"`
	Due      time.Time `json:"due,omitzero"`
	// Since is when it was decided; what fails for too long is given up.
	Since time.Time `json:"si,omitzero"`

	Thread  *Thread  `json:"th,omitempty"`
	Request *Request `json:"rq,omitempty"`
	Text    string   `json:"tx,omitempty"`
	// Refusal: Text says that something will not be done.
	Refusal bool `json:"no,omitempty"`
	// Choices that Ask offers.
	Choices []Choice `json:"ch,omitempty"`
	// Ref is what Reply answers.
	Ref string `json:"rf,omitempty"`
	To  ID     `json:"to,omitempty"`
	// Stay is what Close books of the turn's box time.
	Stay *Stay `json:"st,omitempty"`
	// Check: what is wanted. Sweep: whose check run a frozen owner may have
	// written to, although the head is another by now.
	Check *CheckState `json:"ck,omitempty"`
	Trail Trail       `json:"tr,omitzero"`
}

// CheckState is what the check run of one commit should say.
type CheckState struct {
	SHA string `json:"sha"`
	// Ref is the platform's id of the check run, when it is known.
	Ref string `json:"ref,omitempty"`
	// Conclusion is empty while in progress; else success, failure, cancelled,
	// timed_out or neutral.
	Conclusion string `json:"c,omitempty"`
	Title      string `json:"t,omitempty"`
	Summary    string `json:"s,omitempty"`
}

// Job is an effect with what its performer needs to know.
type Job struct {
	Effect Effect
	// State is a copy of the state as committed when the job was started.
	State State
	// Lease is under which it is performed; its Epoch fences what is outside.
	Lease Lease
	// Now is the store's clock. All times of the State are by it, and the clock
	// of this machine may be another.
	Now func() time.Time
	// Repeat: it may have been performed before. Look before doing.
	Repeat bool
	// Latest returns the state as committed last. A running turn learns of
	// requests that steer it from there.
	Latest func() State
	// Progress hands on how far it is. It never blocks; the newest wins.
	Progress func(Progress)
}

// Performer does effects. Perform may be called again for an effect that was
// performed already, by this process or by one that died in the middle; the
// world must look as if it had been performed once. A cancelled context's
// cause says why: ErrStopRequested, ErrShutdown, ErrBoxLost or ErrLeaseLost.
type Performer interface {
	Perform(ctx context.Context, job Job) (Performed, error)
}

// The causes of a cancelled context: a closed list.
var (
	// ErrStopRequested: a person said stop. End the work and report Stopped.
	ErrStopRequested = errors.New("stop requested")
	// ErrShutdown: this process ends. Leave everything running and return.
	ErrShutdown = errors.New("shutting down")
	// ErrBoxLost: the box is gone, and the work begins again in another. Return.
	ErrBoxLost = errors.New("the box is lost")
	// ErrLeaseLost: another owner has the session. Touch nothing and return.
	ErrLeaseLost = errors.New("lease lost")
)

// Problem is an error with a sentence for people. Platforms show Say, logs
// show Err.
type Problem struct {
	// Say is one plain sentence: what happened and what to do.
	Say string
	// Err is the chain for the operator.
	Err error
	// Again: transient, worth repeating after After (zero: by backoff).
	Again bool
	After time.Duration
	// Passing: the other side is away, and it is not for a person to bring it
	// back. Such is waited for longer.
	Passing bool
	// Gone: the thread is no longer ours to speak in, because the platform took
	// the access back or the thread is deleted. Work that nobody else hears of
	// ends.
	Gone bool
}

func (p *Problem) Error() string { return p.Err.Error() }
func (p *Problem) Unwrap() error { return p.Err }
