// Package agent is the contract between ship and a coding agent that works in
// a box, and the supervisor of one turn of it.
//
// The agent's own event stream is a hint; a Snapshot, polled, is the truth.
// Every limit lives here, outside the agent, because none inside one was found
// to hold. And whatever is sent carries an id fixed beforehand, so that a
// gateway that was killed sends it again and finds the turn that it began.
package agent

import (
	"context"
	"errors"
	"time"

	"ship/sandbox"
)

// What a caller decides on.
var (
	// ErrDown: the agent's server does not answer. Revive it.
	ErrDown = errors.New("agent does not answer")
	// ErrUnknown: no such conversation. Open one.
	ErrUnknown = errors.New("agent knows no such conversation")
	// ErrModel: the model is not among those that the agent was set up with.
	ErrModel = errors.New("model is not offered")
)

// Driver starts one kind of coding agent.
type Driver interface {
	// Start starts the agent's server in the box, or finds the running one, and
	// returns when it answers. It may be called twice, also by another process
	// after a crash; a turn that is running is not disturbed. It may take a
	// minute. Errors are the box's.
	Start(ctx context.Context, box sandbox.Box, setup Setup) (Agent, error)
}

// Agent speaks with one running server. It is a handle: another one, made by
// another process, sees the same. All methods are safe for concurrent use.
type Agent interface {
	// Open returns the conversation of this title, making it if there is none.
	Open(ctx context.Context, title string) (conversation string, err error)
	// Prompt says something in a conversation. The same Prompt.ID is said once,
	// however often this is called. While the agent works it is taken in at the
	// next step, else it begins a turn. ErrUnknown, ErrModel, ErrDown.
	Prompt(ctx context.Context, conversation string, p Prompt) error
	// Snapshot tells what has happened since the prompt of this id, and refuses
	// whatever the agent waits for a person to permit. ErrUnknown, ErrDown.
	Snapshot(ctx context.Context, conversation, promptID string) (Snapshot, error)
	// Abort ends what the agent does in a conversation, tools included. It
	// returns before all is quiet. An idle conversation: nil.
	Abort(ctx context.Context, conversation string) error
	// Hints yields when something may have moved, and closes when ctx ends. A
	// hint may be lost, doubled or false.
	Hints(ctx context.Context) <-chan struct{}
	// Revive makes a dead server live again and leaves a living one alone. A
	// turn that ran in the dead one is cut: it does not go on by itself.
	Revive(ctx context.Context) (restarted bool, err error)
}

// Setup is what an agent is started with. A change of it takes effect when the
// agent is next idle.
type Setup struct {
	// Program is the absolute path of the agent's program in the box.
	Program string
	// Providers with the models that a prompt may name. The first model of the
	// first provider is the agent's default.
	Providers []Provider
	// Broker is the broker's URL as seen in the box; empty: sandbox.BrokerURL.
	Broker string
	// Instructions are files that the agent follows, as absolute paths in the
	// box; missing ones are skipped. Nil: AGENTS.md in sandbox.RepoDir.
	Instructions []string
	// Silence is how long a model may send nothing, before its answer or
	// within, until the call is tried again. Zero: two minutes.
	Silence time.Duration
	// Env is added to the environment of the agent and of all that it starts,
	// as NAME=VALUE. It holds no secret: the box can read it.
	Env []string
}

// Provider is a list of models that the broker reaches under one name.
type Provider struct {
	// Name as in /broker/model/NAME: letters, digits, dash and underscore.
	Name   string
	Models []Offer
}

// Offer is one model of a provider.
type Offer struct {
	Name string
	// Context and Output are limits in tokens; zero: not known.
	Context int
	Output  int
	// Price is for display only. The broker's count is what is owed.
	Price Price
}

// Price in USD per million tokens.
type Price struct {
	Input  float64
	Cached float64
	Output float64
}

// Model names the model of a prompt.
type Model struct {
	Provider string
	Name     string
}

// Prompt is something to say to the agent, once.
type Prompt struct {
	// ID makes it repeatable. Unique within the box.
	ID   string
	Text string
	// System is added to the agent's own system prompt, for this turn.
	System string
	Model  Model
}
