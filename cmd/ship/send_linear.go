package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"ship/integrations/linear/lineartest"
)

// linearPing is of a type that means nothing to ship, so that nothing follows
// from it.
const linearPing = `{"type":"Ping","action":"ping"}`

// linearEvent is what the types of webhooks look like. They end up in a header.
var linearEvent = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

// linear signs a body of Linear's. It carries the time of now, for ship takes
// nothing that is old.
func (o sendOptions) linear(s Settings, what string) (signed, error) {
	body := []byte(linearPing)
	if what != "ping" {
		var err error
		if body, err = readFixture(what); err != nil {
			return signed{}, err
		}
	}
	secret, err := o.signingSecret("linear.webhook_secret", s.Linear.WebhookSecret)
	if err != nil {
		return signed{}, err
	}
	return signLinear(body, secret, cmp.Or(o.delivery, newGUID()), time.Now())
}

// signLinear stamps a body with a time and signs it as Linear does.
func signLinear(body []byte, secret, id string, at time.Time) (signed, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return signed{}, fmt.Errorf("the fixture is not a JSON object: %w", err)
	}
	var event string
	if err := json.Unmarshal(fields["type"], &event); err != nil || !linearEvent.MatchString(event) {
		return signed{}, errors.New("the fixture has no type, as webhooks of Linear's have")
	}
	stamp := strconv.FormatInt(at.UnixMilli(), 10)
	fields["webhookTimestamp"] = json.RawMessage(stamp)
	body, err := json.Marshal(fields)
	if err != nil {
		return signed{}, fmt.Errorf("stamp the fixture: %w", err)
	}
	d := lineartest.Delivery{Body: body, Header: http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"Linear-Webhook"},
		"Linear-Event": {event}, "Linear-Delivery": {id}, "Linear-Timestamp": {stamp},
	}}.Sign(secret)
	return signed{id, d.Header, d.Body}, nil
}
