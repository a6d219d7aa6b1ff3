package agent

import (
	"cmp"
	"context"
	"time"
)

// Run is one turn to supervise. The same Run given again after a crash finds
// the turn that was begun.
type Run struct {
	// Conversation to speak in, if it is known. If it is empty, or the agent
	// knows it no more, the one of Title is opened.
	Conversation string
	Title        string
	Prompt       Prompt
	Limits       Limits
	// StopCause is the cause of a cancelled context that means "end the turn".
	// Every other cause means "let it run and leave".
	StopCause error
	// Usage is what the broker counted for this turn. Nil, or an error from it:
	// the agent's own count is used.
	Usage func(context.Context) (Usage, error)
	// Progress is told when something moved, and must not block. May be nil.
	Progress func(Progress)
	// Redact is applied to every text that leaves. May be nil.
	Redact func(string) string
	// Watch is shown the turn's calls when something moved, and at the end. It must
	// not block, nor keep or change the slice, and what it is shown is not redacted.
	// May be nil.
	Watch func(calls []Call)
}

// Limits of a turn. Money and model calls are limited by the broker, which is
// the only place that the agent cannot pass by.
type Limits struct {
	// Deadline is a moment, not a span, so that a restart does not extend it.
	// Zero: none.
	Deadline time.Time
	// Stall is how long nothing may move. Default 5 minutes.
	Stall time.Duration
	// ToolStall replaces Stall while a tool runs: a build that prints nothing
	// is at work. Default 20 minutes.
	ToolStall time.Duration
	// Retries is how often the agent may ask a failing model again. Default 5.
	Retries int
	// Repeats is how often in a row the same call may fail in the same way.
	// Default 3.
	Repeats int
	// Echoes is how often in a row the same call may succeed. Default 10.
	Echoes int
	// Start is how long the agent may take to begin. Default 30 seconds.
	Start time.Duration
	// Lost is how long the agent's server may be out of reach. Default 2
	// minutes.
	Lost time.Duration
	// Poll is how often to look without a hint. Default 2 seconds.
	Poll time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Stall = cmp.Or(l.Stall, 5*time.Minute)
	l.ToolStall = cmp.Or(l.ToolStall, 20*time.Minute)
	l.Retries = cmp.Or(l.Retries, 5)
	l.Repeats = cmp.Or(l.Repeats, 3)
	l.Echoes = cmp.Or(l.Echoes, 10)
	l.Start = cmp.Or(l.Start, 30*time.Second)
	l.Lost = cmp.Or(l.Lost, 2*time.Minute)
	l.Poll = cmp.Or(l.Poll, 2*time.Second)
	return l
}

// Progress is how far a turn is. Each replaces the one before.
type Progress struct {
	Conversation string
	// Doing is what happens now, in a few words.
	Doing string
	Todos []Todo
	// Steps are the last things that the agent did, newest last, at most 8.
	Steps []string
	Usage Usage
	// Active is when the agent last did real work.
	Active time.Time
}

// Ending is how a turn came to its end.
type Ending string

// The endings of a turn. Only Completed is a success.
const (
	Completed Ending = "completed"
	Stopped   Ending = "stopped"
	// Stuck: the same call again and again.
	Stuck Ending = "stuck"
	// TimedOut: the deadline.
	TimedOut Ending = "timed out"
	// Stalled: nothing moved for too long.
	Stalled Ending = "stalled"
	// Spent: model calls or money, by the broker's count.
	Spent Ending = "spent"
	// Refused: the model or its provider said no for good.
	Refused Ending = "refused"
	// Unreachable: the model did not answer within its retries.
	Unreachable Ending = "unreachable"
	// Crashed: the agent or its box was lost.
	Crashed Ending = "crashed"
)

// Result of a turn.
type Result struct {
	Ending Ending
	// Say is one plain sentence for people, with what to do next. Empty when
	// Completed.
	Say string
	// Answer is what the agent said last, at most 16 KiB.
	Answer string
	// Conversation that it happened in, for the next turn.
	Conversation string
	Calls        []Call
	Usage        Usage
	// Cause is what lies behind the ending, for the operator's log. May be nil.
	Cause error
}
