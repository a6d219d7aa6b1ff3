package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"time"
)

// Phase is a session's state in a word for people.
type Phase string

// The phases that people see.
const (
	// PhaseAsking: a question has to be answered before anything begins.
	PhaseAsking     Phase = "asking"
	PhaseQueued     Phase = "queued"
	PhasePreparing  Phase = "preparing"
	PhaseWorking    Phase = "working"
	PhaseStopping   Phase = "stopping"
	PhasePublishing Phase = "publishing"
	PhaseEnded      Phase = "ended"
)

// View is what people may see of a session, and all that a status message is
// rendered from. Two states with the same view need no update.
type View struct {
	Session ID       `json:"id"`
	Title   string   `json:"ti,omitempty"`
	Phase   Phase    `json:"ph"`
	Turn    int      `json:"n"`
	By      []string `json:"by,omitempty"` // logins, the first started the turn
	Model   string   `json:"mo,omitempty"`
	Place   int      `json:"pl,omitempty"`
	Doing   string   `json:"dg,omitempty"`
	Todos   []Todo   `json:"td,omitempty"`
	Steps   []string `json:"st,omitempty"`
	Usage   Usage    `json:"us"` // of this turn; money rounded to cents
	// Box is how long a box ran for this turn, and All what all turns took, to the
	// end of what was counted.
	Box time.Duration `json:"bx,omitempty"`
	All Cost          `json:"al,omitzero"`
	// Today, if that is known; rounded to cents.
	Today   *Today       `json:"dy,omitempty"`
	Outcome *Outcome     `json:"oc,omitempty"`
	Changed bool         `json:"ch,omitempty"`
	Files   int          `json:"fs,omitempty"`
	Repo    string       `json:"rp,omitempty"`
	Base    string       `json:"ba,omitempty"`
	Branch  string       `json:"br,omitempty"`
	Head    string       `json:"hd,omitempty"`
	PR      *PullRequest `json:"pr,omitempty"`
	// Preview of what the session's box serves; nil: none.
	Preview *Preview  `json:"pv,omitempty"`
	Started time.Time `json:"s0,omitzero"`
	// Took is how long the turn lasted; zero while it runs.
	Took time.Duration `json:"tk,omitempty"`
}

// ViewOf derives the view. Before the first turn the phase is preparing.
func ViewOf(s State) View {
	v := View{
		Session: s.ID, Title: s.Title, Phase: PhasePreparing, Turn: s.Turns,
		Repo: s.Repo.Name, Base: s.Base, Branch: s.Branch, Head: s.Head, PR: s.PR, Preview: s.Preview,
	}
	v.All = Cost{USD: cents(s.Spent.USD), Box: time.Duration(s.BoxSeconds) * time.Second}
	if s.Today != nil {
		sum := *s.Today
		sum.Person, sum.All = cents(sum.Person), cents(sum.All)
		v.Today = &sum
	}
	t := s.Turn
	if s.Asking != nil && !s.Busy() {
		v.Phase = PhaseAsking
		return v
	}
	if t == nil {
		return v
	}
	v.Phase = phaseOf(*t)
	v.Model, v.Changed, v.Files, v.Started, v.Outcome = t.Model, t.Changed, t.Files, t.Started, t.Outcome
	for _, r := range t.Requests {
		v.By = append(v.By, r.By.Login)
	}
	v.Place, v.Doing, v.Todos, v.Steps = t.Progress.Place, t.Progress.Doing, t.Progress.Todos, t.Progress.Steps
	v.Usage = t.Progress.Usage
	if t.Outcome != nil {
		v.Usage = t.Outcome.Usage
	}
	if s.Busy() {
		v.All.USD = cents(s.Spent.USD + v.Usage.USD)
	}
	v.Usage.USD, v.Box = cents(v.Usage.USD), time.Duration(t.Box)*time.Second
	v.Took = time.Duration(t.Took) * time.Second
	return v
}

func cents(usd float64) float64 { return math.Round(usd*100) / 100 }

func phaseOf(t Turn) Phase {
	switch {
	case t.Stage == Ended:
		return PhaseEnded
	case t.Stopping != "" && t.Stage != Publishing && t.Stage != Opening:
		return PhaseStopping
	case t.Progress.Place > 0:
		return PhaseQueued
	case t.Stage == Preparing:
		return PhasePreparing
	case t.Stage == Running:
		return PhaseWorking
	default:
		return PhasePublishing
	}
}

// Digest identifies what the view shows: the phase, a colon, a hash.
func (v View) Digest() string {
	b, err := json.Marshal(v)
	if err != nil {
		return "" // unreachable: a View holds nothing that cannot be encoded
	}
	sum := sha256.Sum256(b)
	return string(v.Phase) + ":" + hex.EncodeToString(sum[:6])
}
