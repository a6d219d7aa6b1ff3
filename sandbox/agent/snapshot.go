package agent

// Phase is what the agent is doing, in a word.
type Phase string

// The phases of an agent.
const (
	Idle     Phase = "idle"
	Busy     Phase = "busy"
	Retrying Phase = "retrying"
)

// Status is what the agent is doing. Attempt and Message belong to Retrying:
// the model failed, and the agent is about to ask it again.
type Status struct {
	Phase   Phase
	Attempt int
	Message string
}

// Snapshot is the truth about a turn: all that happened since its prompt.
type Snapshot struct {
	Status Status
	// Prompted: the prompt has arrived. Started: the agent has begun to answer.
	Prompted bool
	Started  bool
	// Finished: idle, and the last answer is complete or failed for good.
	Finished bool
	// Cut: idle although the turn is not finished. Something ended it from
	// outside, and it will not go on by itself.
	Cut bool
	// Aborted: finished because somebody called Abort.
	Aborted bool
	// Failure is why the last answer failed, if it did.
	Failure *Failure
	// Text is what the agent said last.
	Text  string
	Todos []Todo
	// Calls of tools, oldest first.
	Calls []Call
	// Prompts are the ids of what else was said since, oldest first.
	Prompts []string
	// Refused counts the permissions and questions that were turned down.
	Refused int
	// Usage of this turn, subagents included, by the agent's own count.
	Usage Usage
	// Fingerprint changes whenever the agent did real work, and only then.
	Fingerprint string
}

// Failure of the model or of the way to it.
type Failure struct {
	// Name of the kind, in the agent's own words.
	Name string
	// Status is the HTTP status; zero: there was none.
	Status int
	// Code is the machine-readable word in the answer, if there was one.
	Code    string
	Message string
	// Retryable: the agent would have tried again.
	Retryable bool
	// Final: asking again will not help, whatever Status says.
	Final bool
}

// Todo is one entry of the agent's list.
type Todo struct {
	Text string
	// Status is pending, in_progress, completed or cancelled.
	Status string
}

// CallStatus is how far a tool call is.
type CallStatus string

// The states of a tool call.
const (
	CallPending CallStatus = "pending"
	CallRunning CallStatus = "running"
	CallDone    CallStatus = "done"
	CallFailed  CallStatus = "failed"
)

// Call is one use of a tool.
type Call struct {
	ID   string
	Tool string
	// Title says in a few words what it does, for people.
	Title string
	// Command is the shell command, if the tool is a shell; at most 500 bytes.
	Command string
	// Digest is the same for the same input.
	Digest string
	Status CallStatus
	// Error says why it failed. A shell command that exits with another code
	// than zero has failed.
	Error string
	// Printed is how many bytes a shell command has printed by now, and Output the
	// last of them, at most 8 KiB.
	Printed int
	Output  string
}

// Usage is what a turn cost.
type Usage struct {
	// Calls of models.
	Calls int
	// Input and Output in tokens; cached and reasoning tokens are included.
	Input  int
	Output int
	USD    float64
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Calls: u.Calls + v.Calls, Input: u.Input + v.Input,
		Output: u.Output + v.Output, USD: u.USD + v.USD,
	}
}
