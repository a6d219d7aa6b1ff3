package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Kind of a delivery, as Socket Mode calls it.
type Kind string

// What Slack delivers.
const (
	Events      Kind = "events_api"
	Commands    Kind = "slash_commands"
	Interactive Kind = "interactive"
)

// Delivery is something that Slack tells the app, over HTTP or a socket. Only
// Events are tried again when they are not answered in time.
type Delivery struct {
	Kind Kind
	// Header and Body of the request over HTTP. It is not signed yet.
	Header http.Header
	Body   []byte
	// Payload is what goes over a socket.
	Payload json.RawMessage

	id      string
	attempt int
	reason  string
	// command and view are what an answer is for.
	command *responder
	view    *view
}

// ID of an event, which retries keep; empty for what is not retried.
func (d Delivery) ID() string { return d.id }

// Sign returns the delivery as signed at some time. Deliver does it anyway.
func (d Delivery) Sign(secret string, at time.Time) Delivery {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, d.Body)
	d.Header = d.Header.Clone()
	d.Header.Set("X-Slack-Request-Timestamp", stamp)
	d.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return d
}

// Retry is the same delivery, tried for the nth time after the first.
// Assumed: it is signed anew.
func (d Delivery) Retry(n int, reason string) Delivery {
	d.attempt, d.reason = n, reason
	d.Header = d.Header.Clone()
	d.Header.Set("X-Slack-Retry-Num", strconv.Itoa(n))
	d.Header.Set("X-Slack-Retry-Reason", reason)
	return d
}

// Answer is what the app said to a delivery.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Attempts that it took.
	Attempts int
}

// retries is how often an event is tried again. Slack waits a minute, then
// five; the stand-in does not.
const retries = 3

// Deliver signs and posts a delivery once, as Slack does: with few seconds to
// answer and no redirects. What the answer says is shown to people.
func (s *Server) Deliver(ctx context.Context, address string, d Delivery) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.AckTimeout, errUnanswered)
	defer cancel()
	s.mu.Lock()
	now := s.now()
	s.mu.Unlock()
	answer, err := Deliver(ctx, address, d.Sign(s.opts.SigningSecret, now))
	if err == nil && answer.Status == http.StatusOK {
		s.answered(d, answer.Body)
	}
	return answer, err
}

// Insist delivers an event as Deliver does, and again until it is answered
// with 2xx, at most three times more.
func (s *Server) Insist(ctx context.Context, address string, d Delivery) (Answer, error) {
	for attempt := 0; ; attempt++ {
		answer, err := s.Deliver(ctx, address, d)
		answer.Attempts = attempt + 1
		done := err == nil && (answer.Status/100 == 2 || answer.Header.Get("X-Slack-No-Retry") == "1")
		if done || d.Kind != Events || attempt == retries || ctx.Err() != nil {
			return answer, err
		}
		d = d.Retry(attempt+1, retryReason(err))
	}
}

func retryReason(err error) string {
	if err != nil {
		return "http_timeout"
	}
	return "http_error"
}

// Deliver posts a delivery just as it is, and returns the answer.
func Deliver(ctx context.Context, address string, d Delivery) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(d.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("deliver: %w", err)
	}
	req.Header = d.Header.Clone()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("deliver: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: body, Attempts: 1}, err
}

// event wraps what happened into a delivery, if the app subscribed to it. The
// caller holds mu.
func (s *Server) event(name string, inner object, c *channel) []Delivery {
	if !slices.Contains(s.opts.Events, name) {
		return nil
	}
	payload := s.envelope(inner)
	payload["is_ext_shared_channel"] = c != nil && c.shared
	return []Delivery{jsonDelivery(payload)}
}

func (s *Server) envelope(inner object) object {
	return object{
		"token": "legacy", "team_id": s.teamID, "context_team_id": s.teamID, "context_enterprise_id": nil, "enterprise_id": nil,
		"api_app_id": s.appID, "event": inner, "type": "event_callback", "event_id": newID("Ev"), "event_time": s.now().Unix(),
		"authorizations": []object{{
			"enterprise_id": nil, "team_id": s.teamID, "user_id": s.bot.id, "is_bot": true, "is_enterprise_install": false,
		}},
		"event_context": "4-" + random(8),
	}
}

func jsonDelivery(payload object) Delivery {
	body := mustJSON(payload)
	return Delivery{Kind: Events, Header: header("application/json"), Body: body, Payload: body, id: str(payload, "event_id")}
}

// interaction wraps what somebody did with a message or a view.
func interaction(payload object) Delivery {
	body := mustJSON(payload)
	form := url.Values{"payload": {string(body)}}.Encode()
	return Delivery{Kind: Interactive, Header: header("application/x-www-form-urlencoded"), Body: []byte(form), Payload: body}
}

func header(kind string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", kind)
	h.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	return h
}

// answered shows people what a delivery was answered with.
func (s *Server) answered(d Delivery, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case d.view != nil:
		s.viewAnswered(d.view, body)
	case d.command != nil && len(bytes.TrimSpace(body)) > 0:
		var sent response
		if json.Unmarshal(body, &sent) != nil {
			sent = response{Text: string(body)}
		}
		if err := s.answer(d.command, sent); err != nil {
			s.Note("the answer to a command was refused: %v", err)
		}
	}
}
