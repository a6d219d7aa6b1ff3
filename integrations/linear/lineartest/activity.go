package lineartest

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"ship/graphql/linear"
)

// staleAfter is how long a session may be silent while it should be working.
const staleAfter = 30 * time.Minute

// status of a session, which nobody can set.
func (s *session) status(now time.Time) linear.AgentSessionStatus {
	working := s.derived == linear.AgentSessionStatusPending || s.derived == linear.AgentSessionStatusActive
	if working && now.Sub(s.spoke) >= staleAfter {
		return linear.AgentSessionStatusStale
	}
	return s.derived
}

// say adds an activity and derives the status from it.
func (s *session) say(a *activity) {
	if a.author.app {
		for _, earlier := range s.activities {
			earlier.gone = earlier.gone || earlier.ephemeral
		}
		s.notice(a.created)
	}
	a.session = s
	s.activities = append(s.activities, a)
	s.spoke, s.updated, s.ended = a.created, a.created, time.Time{}
	switch a.content.Type {
	case linear.TypeElicitation:
		s.derived = linear.AgentSessionStatusAwaitinginput
	case linear.TypeResponse:
		s.derived, s.ended = linear.AgentSessionStatusComplete, a.created
	case linear.TypeError:
		s.derived, s.ended = linear.AgentSessionStatusError, a.created
	default: // assumed of prompts: Linear's own examples show them with "active"
		s.derived = linear.AgentSessionStatusActive
	}
	if s.started.IsZero() {
		s.started = a.created
	}
}

// notice keeps when the app first showed that it is there.
func (s *session) notice(at time.Time) {
	if s.seen.IsZero() {
		s.seen = at
	}
}

// uuidV4 is what Linear asks of ids.
var uuidV4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// checkID refuses an id for an activity that is malformed or taken.
func (s *Server) checkID(id string) error {
	if !uuidV4.MatchString(id) {
		return invalid("id must be a UUID")
	}
	if s.activity(id) != nil {
		return duplicate("AgentActivity")
	}
	return nil
}

// activity finds one by id, also one that is gone. The caller holds mu.
func (s *Server) activity(id string) *activity {
	for _, session := range s.sessions {
		if a := find(session.activities, func(a *activity) bool { return a.id == id }); a != nil {
			return a
		}
	}
	return nil
}

// decodeContent refuses what the app may not say. Assumed of fields that are
// not documented for the kind: Linear may ignore them.
func decodeContent(raw json.RawMessage) (linear.Content, error) {
	var c linear.Content
	if err := strict(raw, &c); err != nil {
		return c, invalid("content: " + err.Error())
	}
	isAction := c.Type == linear.TypeAction
	speech := []linear.ContentType{linear.TypeThought, linear.TypeElicitation, linear.TypeResponse, linear.TypeError}
	switch {
	case !isAction && !slices.Contains(speech, c.Type):
		return c, invalid("content: an agent may not create an activity of type " + string(c.Type))
	case isAction && (blank(c.Action) || blank(c.Parameter)):
		return c, invalid("content: action and parameter must not be empty")
	case isAction && c.Body != "", !isAction && c.Action+c.Parameter+c.Result != "":
		return c, invalid("content: there are fields that are not of this type")
	case !isAction && blank(c.Body):
		return c, invalid("content: body must not be empty")
	}
	return c, nil
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// strict decodes all there is, and nothing that is not known.
func strict(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// decodeChoices refuses what cannot be offered.
func decodeChoices(raw json.RawMessage) error {
	var c linear.Choices
	if err := strict(raw, &c); err != nil {
		return invalid("signalMetadata: " + err.Error())
	}
	if len(c.Options) == 0 || slices.ContainsFunc(c.Options, func(o linear.Choice) bool { return blank(o.Value) }) {
		return invalid("signalMetadata: options must each have a value")
	}
	return nil
}

// decodePlan refuses what is no plan.
func decodePlan(raw json.RawMessage) (linear.Plan, error) {
	var plan linear.Plan
	if err := strict(raw, &plan); err != nil {
		return nil, invalid("plan: " + err.Error())
	}
	known := []linear.StepStatus{linear.StepPending, linear.StepInProgress, linear.StepCompleted, linear.StepCanceled}
	for _, step := range plan {
		if blank(step.Content) || !slices.Contains(known, step.Status) {
			return nil, invalid("plan: each step must have content and one of the known statuses")
		}
	}
	return plan, nil
}

// addLinks adds links to others. Assumed: one that is there is refused.
func addLinks(to []linear.Link, urls []linear.URL) ([]linear.Link, error) {
	out := slices.Clone(to)
	for _, u := range urls {
		parsed, err := url.Parse(u.Url)
		if err != nil || !parsed.IsAbs() || parsed.Host == "" || blank(u.Label) {
			return nil, invalid("externalUrls: each must have a label and an absolute url")
		}
		if slices.ContainsFunc(out, func(l linear.Link) bool { return l.Url == u.Url }) {
			return nil, invalid("externalUrls: the url is there already: " + u.Url)
		}
		out = append(out, linear.Link(u))
	}
	return out, nil
}
