package linear

import "encoding/json"

// ContentType says what kind of activity it is.
type ContentType string

// The kinds of activity. People write prompts, the agent everything else.
const (
	TypeThought     ContentType = "thought"
	TypeAction      ContentType = "action"
	TypeElicitation ContentType = "elicitation"
	TypeResponse    ContentType = "response"
	TypeError       ContentType = "error"
	TypePrompt      ContentType = "prompt"
)

// Content of an activity. A kind that is not known here keeps its fields empty.
// See https://linear.app/developers/agent-interaction for what each kind holds.
type Content struct {
	Type ContentType `json:"type"`
	// Body in Markdown, of all but actions.
	Body string `json:"body,omitempty"`
	// Action and Parameter are both demanded of an action. Result, in Markdown,
	// is there when it is done.
	Action    string `json:"action,omitempty"`
	Parameter string `json:"parameter,omitempty"`
	Result    string `json:"result,omitempty"`
}

// Thought keeps the session active. It may be ephemeral.
func Thought(body string) Content { return Content{Type: TypeThought, Body: body} }

// Action tells of a step, without a result while it is under way. It keeps the
// session active and may be ephemeral.
func Action(action, parameter, result string) Content {
	return Content{Type: TypeAction, Action: action, Parameter: parameter, Result: result}
}

// Elicitation asks the person and has the session await an answer.
func Elicitation(body string) Content { return Content{Type: TypeElicitation, Body: body} }

// Response ends the session well.
func Response(body string) Content { return Content{Type: TypeResponse, Body: body} }

// Failure ends the session with an error.
func Failure(body string) Content { return Content{Type: TypeError, Body: body} }

// Choices go with a question as the metadata of the signal "select". The
// answer comes as an ordinary prompt and may be any text.
type Choices struct {
	Options []Choice `json:"options"`
}

// Choice is one of the answers that are offered.
type Choice struct {
	Label string `json:"label,omitempty"`
	// Value becomes the body of the prompt.
	Value string `json:"value"`
}

// StepStatus is how far a step of a plan is.
type StepStatus string

// The statuses of a step.
const (
	StepPending    StepStatus = "pending"
	StepInProgress StepStatus = "inProgress"
	StepCompleted  StepStatus = "completed"
	StepCanceled   StepStatus = "canceled"
)

// Step of a plan.
type Step struct {
	Content string     `json:"content"`
	Status  StepStatus `json:"status"`
}

// Plan is always sent whole. The schema calls it an object, the documentation
// shows this list.
type Plan []Step

// MarshalJSON writes a plan that is nil as an empty one: null is refused.
func (p Plan) MarshalJSON() ([]byte, error) {
	if p == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]Step(p))
}
