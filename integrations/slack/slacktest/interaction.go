package slacktest

import (
	"fmt"
	"net/url"
	"time"
)

// triggerLasts is how long a view can be opened after what somebody did.
const triggerLasts = 3 * time.Second

// trigger lets the app open a view, once.
type trigger struct {
	by      *user
	expires time.Time
	used    bool
}

// trigger makes one. The caller holds mu.
func (s *Server) trigger(by *user) string {
	id := fmt.Sprintf("%d.%d.%s", s.now().UnixMilli(), len(s.triggers)+1, random(8))
	s.triggers[id] = &trigger{by: by, expires: s.now().Add(triggerLasts)}
	return id
}

// Command is a slash command that somebody gives. There is none in a thread.
type Command struct {
	// Channel by name or id; empty: the conversation with the app.
	Channel, By string
	// Name with the slash; empty: that of the app.
	Name string
	// Text as it is typed.
	Text string
}

// Slash has somebody give a command. What it is answered with is shown to
// them, and is no message.
func (s *Server) Slash(x Command) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := s.person(x.By)
	c := s.direct(by)
	if x.Channel != "" {
		c = s.place(x.Channel)
	}
	if x.Name == "" {
		x.Name = "/" + s.opts.Name
	}
	text, _ := s.typed(x.Text)
	r := responder{to: by, channel: c}
	fields := map[string]string{
		"token": "legacy", "team_id": s.teamID, "team_domain": domain, "channel_id": c.id, "channel_name": channelName(c),
		"user_id": by.id, "user_name": by.handle, "command": x.Name, "text": text, "api_app_id": s.appID,
		"response_url": s.responseURL(r), "trigger_id": s.trigger(by), "is_enterprise_install": "false",
	}
	form := url.Values{}
	for key, value := range fields {
		form.Set(key, value)
	}
	return Delivery{
		Kind: Commands, Header: header("application/x-www-form-urlencoded"), Body: []byte(form.Encode()), Payload: mustJSON(fields),
		command: &r,
	}
}

// interaction is what all of them tell. Assumed: in Slack Connect the team is
// that of whoever did it.
func (s *Server) interaction(kind string, by *user) object {
	return object{
		"type": kind, "token": "legacy", "api_app_id": s.appID, "user": actor(by), "team": object{"id": by.team, "domain": domain},
		"enterprise": nil, "is_enterprise_install": false, "trigger_id": s.trigger(by),
	}
}

// Shortcut has somebody use a shortcut on a message.
func (s *Server) Shortcut(x Change, callback string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, by := s.mustMessage(s.place(x.Channel).id, x.TS), s.person(x.By)
	o := s.interaction("message_action", by)
	o["callback_id"], o["action_ts"], o["message_ts"] = callback, s.actionTS(), m.ts
	o["channel"] = object{"id": m.channel.id, "name": channelName(m.channel)}
	o["message"] = s.renderMessage(m, true)
	o["response_url"] = s.responseURL(responder{to: by, channel: m.channel, message: m})
	return interaction(o)
}

// Press has somebody press a button, by its label or action_id. It is an error
// if they see none.
func (s *Server) Press(x Change, button string) (Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used, err := s.use(x, s.isButton(button))
	if err != nil {
		return Delivery{}, fmt.Errorf("press %q: %w", button, err)
	}
	return s.acted(used, pressed(used.element)), nil
}

// Choose has somebody choose among options, by their labels or values. The
// element is named by its placeholder or action_id.
func (s *Server) Choose(x Change, element string, options ...string) (Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used, err := s.use(x, func(e object) bool {
		return str(e, "type") != "button" && (str(e, "action_id") == element || s.textOf(e["placeholder"]) == element)
	})
	if err != nil {
		return Delivery{}, fmt.Errorf("choose in %q: %w", element, err)
	}
	value, err := s.fill(used.element, options)
	if err != nil {
		return Delivery{}, fmt.Errorf("choose in %q: %w", element, err)
	}
	if str(used.element, "type") != "overflow" { // which keeps nothing
		used.chosen().set(used.block, str(used.element, "action_id"), value)
	}
	return s.acted(used, clone(value)), nil
}

// PressInView has somebody press a button in a view that they see.
func (s *Server) PressInView(id, button string) (Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := find(s.views, func(v *view) bool { return v.id == id && !v.closed })
	if v == nil {
		return Delivery{}, fmt.Errorf("press %q: there is no view %s", button, id)
	}
	block, e := locate(v.blocks, s.isButton(button))
	if e == nil {
		return Delivery{}, fmt.Errorf("press %q: it is not in the view:\n%s", button, s.renderedBlocks(v.blocks))
	}
	o := s.interaction("block_actions", v.to)
	o["container"], o["view"] = object{"type": "view", "view_id": v.id}, s.renderView(v)
	o["state"] = object{"values": s.stateOf(v.blocks, nil)}
	o["actions"] = []object{s.action(block, e, pressed(e))}
	return interaction(o), nil
}

// isButton says how a button is found: by its label or action_id.
func (s *Server) isButton(name string) func(object) bool {
	return func(e object) bool {
		return str(e, "type") == "button" && (str(e, "action_id") == name || s.textOf(e["text"]) == name)
	}
}

// pressed is what is told of a button.
func pressed(e object) object {
	out := object{"text": e["text"]}
	for _, key := range []string{"value", "style", "url"} {
		if v, ok := e[key]; ok {
			out[key] = v
		}
	}
	return out
}

// action completes what is told of an element that was used.
func (s *Server) action(block string, e, what object) object {
	what["type"], what["action_id"], what["block_id"], what["action_ts"] = e["type"], e["action_id"], block, s.actionTS()
	return what
}

// locate finds an element in some blocks, and the block that it is in.
func locate(blocks []object, is func(object) bool) (block string, e object) {
	for _, b := range blocks {
		for _, e := range interactive(b) {
			if is(e) {
				return str(b, "block_id"), e
			}
		}
	}
	return "", nil
}

// used is an element of a message that somebody uses.
type used struct {
	by      *user
	message *message
	// private: only one person sees the message.
	private *ephemeral
	block   string
	element object
}

// use finds what somebody uses in a message as they see it.
func (s *Server) use(x Change, is func(object) bool) (used, error) {
	by, c := s.person(x.By), s.place(x.Channel)
	u := used{by: by, message: c.find(x.TS)}
	if u.message == nil {
		u.private = find(s.ephemerals, func(e *ephemeral) bool { return e.ts == x.TS && e.to == by && e.channel == c && !e.hidden && !e.gone })
		if u.private == nil {
			return used{}, fmt.Errorf("there is no message %s", x.TS)
		}
		u.message = u.private.message
	}
	if u.block, u.element = locate(u.message.blocks, is); u.element == nil {
		return used{}, fmt.Errorf("it is not in the message:\n%s", s.rendered(u.message.content))
	}
	return u, nil
}

func (u used) chosen() values {
	if u.message.state[u.by] == nil {
		u.message.state[u.by] = values{}
	}
	return u.message.state[u.by]
}

// acted tells that somebody used an element.
func (s *Server) acted(u used, action object) Delivery {
	m := u.message
	container := object{"type": "message", "message_ts": m.ts, "channel_id": m.channel.id, "is_ephemeral": u.private != nil}
	if m.thread != "" {
		container["thread_ts"] = m.thread
	}
	o := s.interaction("block_actions", u.by)
	o["container"], o["actions"] = container, []object{s.action(u.block, u.element, action)}
	o["channel"] = object{"id": m.channel.id, "name": channelName(m.channel)}
	o["state"] = object{"values": s.stateOf(m.blocks, u.chosen())}
	r := responder{to: u.by, channel: m.channel, ephemeral: u.private}
	if u.private == nil {
		r.message, o["message"] = m, s.renderMessage(m, true)
	}
	o["response_url"] = s.responseURL(r)
	return interaction(o)
}
