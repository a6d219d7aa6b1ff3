package linear

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ship/bot"
	"ship/session"
)

// payload is what ship needs of a webhook's body. Field names are those of
// the *WebhookPayload types in Linear's schema.
type payload struct {
	Type         string `json:"type"`
	Action       string `json:"action"`
	Organization string `json:"organizationId"`
	App          string `json:"appUserId"`
	Created      string `json:"createdAt"`
	// Sent is in ms since 1970; the schema makes it a Float.
	Sent float64 `json:"webhookTimestamp"`

	Session  agentSession `json:"agentSession"`
	Activity activity     `json:"agentActivity"`
	Context  string       `json:"promptContext"`
	Guidance []guidance   `json:"guidance"`
	Previous []comment    `json:"previousComments"`

	Notification notification `json:"notification"`

	AddedTeams   []string `json:"addedTeamIds"`
	RemovedTeams []string `json:"removedTeamIds"`
}

type agentSession struct {
	ID        string  `json:"id"`
	App       string  `json:"appUserId"`
	Created   string  `json:"createdAt"`
	CreatorID string  `json:"creatorId"`
	Creator   user    `json:"creator"`
	Issue     string  `json:"issueId"`
	Comment   comment `json:"comment"`
	// Source is the comment that the session was made from, if that is in
	// another thread.
	Source string `json:"sourceCommentId"`
}

type activity struct {
	ID     string `json:"id"`
	UserID string `json:"userId"`
	User   user   `json:"user"`
	Signal string `json:"signal"`
	// Content has the text. Linear's prose says that Body does, its schema
	// knows no such field.
	Content struct {
		Type string `json:"type"`
		Body string `json:"body"`
	} `json:"content"`
	Body    string `json:"body"`
	Comment string `json:"sourceCommentId"`
}

type user struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

type comment struct {
	ID     string `json:"id"`
	Body   string `json:"body"`
	UserID string `json:"userId"`
}

type guidance struct {
	Body   string `json:"body"`
	Origin struct {
		Type string `json:"type"`
		Team struct {
			Name string `json:"name"`
		} `json:"team"`
	} `json:"origin"`
}

type notification struct {
	ID      string `json:"id"`
	Issue   string `json:"issueId"`
	ActorID string `json:"actorId"`
	Actor   user   `json:"actor"`
}

// decode reads a body. A field of another shape than expected is left empty:
// this part of Linear's API is still a preview, and whether a webhook can do
// without the field is decided where it is needed.
func decode(body []byte) (payload, error) {
	var p payload
	var shape *json.UnmarshalTypeError
	if err := json.Unmarshal(body, &p); err != nil && !errors.As(err, &shape) {
		return payload{}, bot.ErrMalformed
	}
	if p.Type == "" {
		return payload{}, fmt.Errorf("no type: %w", bot.ErrMalformed)
	}
	return p, nil
}

// moment reads a time; zero when it cannot be read, for everything that was
// sent can do without.
func moment(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// app is our own user in the workspace.
func (p payload) app() string { return cmp.Or(p.App, p.Session.App) }

// automation stands for a person where an automation or another agent began
// the session, and no person answers for it. Ids of people are UUIDs.
const automation = "automation"

const (
	// maxCalled is how much is kept of what a person calls themselves, in bytes.
	maxCalled = 256
	// maxAddress is the longest address that mail can be sent to. A longer one is
	// nobody's.
	maxAddress = 254
)

// person is who did something. Linear vouches for the id; names can be chosen.
func (u user) person(id string) (session.Person, error) {
	if id == "" {
		id = u.ID
	}
	switch {
	case id == "":
		return session.Person{Login: automation}, nil
	case !validID.MatchString(id):
		return session.Person{}, fmt.Errorf("user: %w", bot.ErrMalformed)
	}
	p := session.Person{Login: id, Name: bot.Prefix(u.Name, maxCalled), Email: u.Email}
	if len(p.Email) > maxAddress {
		p.Email = ""
	}
	return p, nil
}
