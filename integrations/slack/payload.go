package slack

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"

	"ship/bot"
	"ship/session"
)

// envelope is what ship needs of what the Events API sends. Blocks are left
// alone: the text says the same, and new kinds of them come all the time.
type envelope struct {
	Type           string          `json:"type"`
	Challenge      string          `json:"challenge"`
	ID             string          `json:"event_id"`
	Team           string          `json:"team_id"`
	Enterprise     string          `json:"enterprise_id"`
	App            string          `json:"api_app_id"`
	Authorizations []authorization `json:"authorizations"`
	// Shared: the channel is shared with another company's workspace.
	Shared bool `json:"is_ext_shared_channel"`
	// Limited is the minute, in s since 1970, in which Slack sent nothing more.
	Limited int64 `json:"minute_rate_limited"`
	Event   event `json:"event"`
}

type authorization struct {
	Team string `json:"team_id"`
	User string `json:"user_id"`
	Bot  bool   `json:"is_bot"`
}

type event struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	Channel     string `json:"channel"`
	ChannelType string `json:"channel_type"`
	TS          string `json:"ts"`
	Thread      string `json:"thread_ts"`
	EventTS     string `json:"event_ts"`
	User        string `json:"user"`
	Text        string `json:"text"`
	// UserTeam and Team are the workspace of who wrote.
	UserTeam string `json:"user_team"`
	Team     string `json:"team"`
	Bot      string `json:"bot_id"`
	App      string `json:"app_id"`
	Hidden   bool   `json:"hidden"`
	Edited   edited `json:"edited"`
	// Message and Previous are what was edited, after and before.
	Message  edition `json:"message"`
	Previous edition `json:"previous_message"`
	// Tokens are those that were revoked.
	Tokens struct {
		Bot []string `json:"bot"`
	} `json:"tokens"`
}

// edited is when a person last changed a message. What Slack adds, such as the
// preview of a link, is none of that.
type edited struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// edition is a message as it was at one time.
type edition struct {
	Subtype  string `json:"subtype"`
	TS       string `json:"ts"`
	Thread   string `json:"thread_ts"`
	User     string `json:"user"`
	UserTeam string `json:"user_team"`
	Team     string `json:"team"`
	Bot      string `json:"bot_id"`
	App      string `json:"app_id"`
	Text     string `json:"text"`
	Edited   edited `json:"edited"`
}

// as is a message that was edited, as if it had been written just so.
func (e envelope) as(m edition, text string) envelope {
	e.Event = event{
		Type: eventMessage, Subtype: m.Subtype, Channel: e.Event.Channel, ChannelType: e.Event.ChannelType,
		TS: m.TS, Thread: m.Thread, User: m.User, UserTeam: m.UserTeam, Team: m.Team, Bot: m.Bot, App: m.App, Text: text,
	}
	return e
}

// team is the workspace that installed the app. In a shared channel the
// envelope's own team may be the other one.
func (e envelope) team() string {
	for _, a := range e.Authorizations {
		if a.Team != "" {
			return a.Team
		}
	}
	return e.Team
}

// bot is our own user in that workspace; empty when Slack does not say.
func (e envelope) bot() string {
	for _, a := range e.Authorizations {
		if a.Bot {
			return a.User
		}
	}
	return ""
}

// own tells whether a message is ours.
func (e envelope) own() bool {
	return e.Event.User != "" && e.Event.User == e.bot() || e.App != "" && e.Event.App == e.App
}

// person is who wrote. Slack names nobody in events.
func (e envelope) person() session.Person {
	foreign := ""
	if its := cmp.Or(e.Event.UserTeam, e.Event.Team); e.Shared && its != e.team() && its != e.Enterprise {
		foreign = its
	}
	return session.Person{Login: login(e.Event.User, foreign)}
}

// command is a slash command. Over HTTP it comes as a form.
type command struct {
	Team    string `json:"team_id"`
	Channel string `json:"channel_id"`
	User    string `json:"user_id"`
	Name    string `json:"user_name"`
	Command string `json:"command"`
	Text    string `json:"text"`
	Trigger string `json:"trigger_id"`
}

func commandFrom(form url.Values) command {
	return command{
		Team: form.Get("team_id"), Channel: form.Get("channel_id"), User: form.Get("user_id"), Name: form.Get("user_name"),
		Command: form.Get("command"), Text: form.Get("text"), Trigger: form.Get("trigger_id"),
	}
}

// interaction is a button that was pressed, or a shortcut.
type interaction struct {
	Type       string  `json:"type"`
	Callback   string  `json:"callback_id"`
	Trigger    string  `json:"trigger_id"`
	ActionTS   string  `json:"action_ts"`
	Team       entity  `json:"team"`
	Enterprise entity  `json:"enterprise"`
	User       presser `json:"user"`
	Channel    entity  `json:"channel"`
	Container  struct {
		Message string `json:"message_ts"`
		Thread  string `json:"thread_ts"`
		Channel string `json:"channel_id"`
	} `json:"container"`
	Message struct {
		TS     string `json:"ts"`
		Thread string `json:"thread_ts"`
		User   string `json:"user"`
		Bot    string `json:"bot_id"`
		Text   string `json:"text"`
	} `json:"message"`
	Actions []action `json:"actions"`
}

type entity struct {
	ID string `json:"id"`
}

type presser struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Name     string `json:"name"`
	Team     string `json:"team_id"`
}

type action struct {
	ID    string `json:"action_id"`
	Block string `json:"block_id"`
	Value string `json:"value"`
	// Selected is what was chosen in a menu.
	Selected struct {
		Value string `json:"value"`
	} `json:"selected_option"`
	TS string `json:"action_ts"`
}

// person is who pressed. The name is the handle, which can be changed.
func (i interaction) person(team string) session.Person {
	foreign := ""
	if i.User.Team != team && i.Enterprise.ID == "" {
		foreign = i.User.Team
	}
	return session.Person{Login: login(i.User.ID, foreign), Name: cmp.Or(i.User.Username, i.User.Name)}
}

// decode reads JSON. A field of another shape than expected is left empty, for
// most of what Slack sends is not for us, and some of that reuses names. What a
// request cannot do without is looked for where it is needed.
func decode[T any](body []byte) (T, error) {
	var v T
	var shape *json.UnmarshalTypeError
	if err := json.Unmarshal(body, &v); err != nil && !errors.As(err, &shape) {
		return v, bot.ErrMalformed
	}
	return v, nil
}
