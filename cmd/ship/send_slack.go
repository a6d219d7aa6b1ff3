package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"ship/integrations/slack/slacktest"
)

// slackPing is what Slack sends when somebody types the address in. Nothing
// follows from it but the answer, which is slackChallenge.
const (
	slackChallenge = "is-anybody-there"
	slackPing      = `{"type":"url_verification","challenge":"` + slackChallenge + `"}`
)

// slack signs a body of Slack's with the time of now, for ship takes nothing
// that is old. Everything else stays as it is.
func (o sendOptions) slack(s Settings, what string) (signed, error) {
	if o.delivery != "" {
		return signed{}, errors.New("what Slack sends has its id in the body: leave --delivery out")
	}
	body := []byte(slackPing)
	if what != "ping" {
		var err error
		if body, err = readFixture(what); err != nil {
			return signed{}, err
		}
	}
	secret, err := o.signingSecret("slack.signing_secret", s.Slack.SigningSecret)
	if err != nil {
		return signed{}, err
	}
	return signSlack(body, secret, time.Now())
}

// slackInteractions are the types of what people press and fill in. Slack posts
// them as a form.
var slackInteractions = []string{"block_actions", "block_suggestion", "message_action", "shortcut", "view_closed", "view_submission"}

// errNotSlack: it is nothing that Slack would post.
var errNotSlack = errors.New("the fixture is neither an event or an interaction in JSON, with its type, nor a form with a command or a payload")

// signSlack signs a body as Slack does: an event as it is, an interaction as
// the form that carries it, and forms, such as slash commands, as they are.
func signSlack(body []byte, secret string, at time.Time) (signed, error) {
	kind := "application/json"
	id, err := slackEvent(body)
	if err != nil {
		kind = "application/x-www-form-urlencoded"
		id, body, err = slackForm(bytes.TrimSpace(body))
	}
	if err != nil {
		return signed{}, err
	}
	d := slacktest.Delivery{Body: body, Header: http.Header{
		"Content-Type": {kind}, "User-Agent": {"Slackbot 1.0 (+https://api.slack.com/robots)"},
	}}.Sign(secret, at)
	return signed{id, d.Header, d.Body}, nil
}

// slackEvent is the id of an event, or else its type.
func slackEvent(body []byte) (id string, err error) {
	var event struct {
		Type string `json:"type"`
		ID   string `json:"event_id"`
	}
	if json.Unmarshal(body, &event) != nil || event.Type == "" || slices.Contains(slackInteractions, event.Type) {
		return "", errNotSlack
	}
	return cmp.Or(event.ID, event.Type), nil
}

// slackForm returns a form, or the one that carries an interaction, and what to
// call it.
func slackForm(body []byte) (id string, form []byte, err error) {
	var interaction struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(body, &interaction) == nil && interaction.Type != "" {
		return interaction.Type, []byte(url.Values{"payload": {string(body)}}.Encode()), nil
	}
	fields, err := url.ParseQuery(string(body))
	switch {
	case err != nil:
	case fields.Has("payload"):
		return "interaction", body, nil
	case fields.Has("command"):
		return "slash_command", body, nil
	}
	return "", nil, errNotSlack
}
