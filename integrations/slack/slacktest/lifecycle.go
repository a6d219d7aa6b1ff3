package slacktest

import (
	"fmt"
	"slices"
)

// StopSession has somebody press the button that stops an agent, which they
// see while the app is processing in a thread. The status stays: to change it
// is up to the app.
func (s *Server) StopSession(x Change) (Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.place(x.Channel)
	a := s.session(c, x.TS)
	if a == nil || a.at(s.now()) != "processing" || !slices.Contains(s.opts.Events, "agent_session_stopped") {
		return Delivery{}, fmt.Errorf("there is no button to stop anything in %s", x.TS)
	}
	return s.event("agent_session_stopped", object{
		"type": "agent_session_stopped", "channel": c.id, "thread_ts": x.TS, "user": s.person(x.By).id,
		"event_ts": s.newTS(), "streaming_message_ts": []string{},
	}, c)[0], nil
}

// RenameSession has somebody give a session another title.
func (s *Server) RenameSession(x Change, title string) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.place(x.Channel)
	a := s.session(c, x.TS)
	if a == nil {
		panic("slacktest: there is no session in " + x.TS)
	}
	before := a.title
	a.title = title
	return s.event("agent_session_title_changed", object{
		"type": "agent_session_title_changed", "channel": c.id, "thread_ts": x.TS, "user": s.person(x.By).id,
		"team_id": s.teamID, "title": title, "previous_title": before, "event_ts": s.newTS(),
	}, c)
}

// OpenHome has somebody open the app's messages.
func (s *Server) OpenHome(by string) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.person(by)
	c := s.direct(u)
	return s.event("app_home_opened", object{
		"type": "app_home_opened", "user": u.id, "channel": c.id, "tab": "messages", "event_ts": s.newTS(),
	}, c)
}

// Uninstall has an administrator remove the app: its token and response URLs
// end, and there are no new sockets.
func (s *Server) Uninstall() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokenGone = "account_inactive"
	return append(s.event("app_uninstalled", object{"type": "app_uninstalled"}, nil), s.revoked()...)
}

// RevokeToken has an administrator revoke the bot's token.
func (s *Server) RevokeToken() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokenGone = "token_revoked"
	return s.revoked()
}

func (s *Server) revoked() []Delivery {
	return s.event("tokens_revoked", object{
		"type": "tokens_revoked", "tokens": object{"oauth": []string{}, "bot": []string{s.bot.id}},
	}, nil)
}

// Reinstall gives the app a new token, which it returns.
func (s *Server) Reinstall() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.tokenGone = "xoxb-"+random(16), ""
	return s.token
}

// Verification is how Slack sees whether an address is the app's: the answer
// must be the challenge.
func (s *Server) Verification(challenge string) Delivery {
	return jsonDelivery(object{"token": "legacy", "challenge": challenge, "type": "url_verification"})
}

// RateLimited tells the app that events were left out in a minute.
func (s *Server) RateLimited() Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return jsonDelivery(object{
		"token": "legacy", "type": "app_rate_limited", "team_id": s.teamID, "api_app_id": s.appID,
		"minute_rate_limited": s.now().Unix() / 60 * 60,
	})
}
