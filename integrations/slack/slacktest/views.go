package slacktest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// view is a window that the app opened for somebody.
type view struct {
	id, hash, root, previous string
	to                       *user
	viewFields
	blocks []object
	errors map[string]string
	closed bool
}

// viewFields are what the app says of a view.
type viewFields struct {
	Type            string          `json:"type"`
	Title           object          `json:"title"`
	Submit          object          `json:"submit"`
	Close           object          `json:"close"`
	Blocks          json.RawMessage `json:"blocks"`
	PrivateMetadata string          `json:"private_metadata"`
	CallbackID      string          `json:"callback_id"`
	ExternalID      string          `json:"external_id"`
	ClearOnClose    bool            `json:"clear_on_close"`
	NotifyOnClose   bool            `json:"notify_on_close"`
}

// openView opens a view, with a trigger that is fresh and unused. Assumed: a
// view that is refused uses it up too. views.push is the same here: it goes on
// top of what is open.
func (s *Server) openView(in args) (object, error) {
	t := s.triggers[in.get("trigger_id")]
	switch {
	case t == nil:
		return nil, refuse("invalid_trigger_id")
	case t.used:
		return nil, refuse("exchanged_trigger_id")
	case !s.now().Before(t.expires):
		return nil, refuse("expired_trigger_id")
	}
	t.used = true
	fields, blocks, err := s.readView(in.get("view"))
	if err != nil {
		return nil, err
	}
	if fields.ExternalID != "" && find(s.views, func(v *view) bool { return v.ExternalID == fields.ExternalID && !v.closed }) != nil {
		return nil, refuse("duplicate_external_id")
	}
	v := s.show(t.by, fields, blocks)
	return object{"view": s.renderView(v)}, nil
}

// show puts a view on top of what somebody sees.
func (s *Server) show(to *user, fields viewFields, blocks []object) *view {
	v := &view{id: newID("V"), hash: s.newTS() + "." + random(4), to: to, viewFields: fields, blocks: blocks}
	v.root = v.id
	if below := s.top(to); below != nil {
		v.root, v.previous = below.root, below.id
	}
	s.views = append(s.views, v)
	return v
}

// top is the view that somebody sees; nil: none.
func (s *Server) top(of *user) *view {
	var last *view
	for _, v := range s.views {
		if v.to == of && !v.closed {
			last = v
		}
	}
	return last
}

func (s *Server) updateView(in args) (object, error) {
	id, external := in.get("view_id"), in.get("external_id")
	v := find(s.views, func(v *view) bool { return !v.closed && (v.id == id || external != "" && v.ExternalID == external) })
	if v == nil {
		return nil, refuse("not_found")
	}
	if hash := in.get("hash"); hash != "" && hash != v.hash {
		return nil, refuse("hash_conflict")
	}
	fields, blocks, err := s.readView(in.get("view"))
	if err != nil {
		return nil, err
	}
	s.replace(v, fields, blocks)
	return object{"view": s.renderView(v)}, nil
}

func (s *Server) replace(v *view, fields viewFields, blocks []object) {
	v.viewFields, v.blocks, v.errors, v.hash = fields, blocks, nil, s.newTS()+"."+random(4)
}

// readView takes a view apart and checks it.
func (s *Server) readView(text string) (viewFields, []object, error) {
	var f viewFields
	if json.Unmarshal([]byte(text), &f) != nil {
		return f, nil, badArguments("view: must be an object")
	}
	if len(text) > 250_000 {
		return f, nil, refuse("view_too_large")
	}
	blocks, err := s.readBlocks(f.Blocks, 100)
	if p, ok := err.(problem); ok {
		p.code = "invalid_arguments"
		return f, nil, p
	}
	if problems := checkView(f, blocks); len(problems) > 0 {
		return f, nil, problem{code: "invalid_arguments", messages: problems}
	}
	return f, blocks, nil
}

func checkView(f viewFields, blocks []object) []string {
	c := &checker{}
	if f.Type != "modal" {
		c.fail("/view/type", "unsupported type: %s", f.Type)
	}
	c.text("/view/title", f.Title, "plain_text", 24)
	for name, o := range map[string]object{"submit": f.Submit, "close": f.Close} {
		if o != nil {
			c.text("/view/"+name, o, "plain_text", 24)
		}
	}
	for _, b := range blocks {
		if str(b, "type") == "input" && f.Submit == nil {
			c.fail("/view/submit", "missing required field")
		}
	}
	c.most("/view/private_metadata", f.PrivateMetadata, 3000)
	c.most("/view/callback_id", f.CallbackID, 255)
	c.most("/view/external_id", f.ExternalID, 255)
	return c.problems
}

func (s *Server) renderView(v *view) object {
	return object{
		"id": v.id, "team_id": v.to.team, "type": v.Type, "title": v.Title, "submit": v.Submit, "close": v.Close, "blocks": v.blocks,
		"private_metadata": v.PrivateMetadata, "callback_id": v.CallbackID, "external_id": v.ExternalID, "hash": v.hash,
		"state": object{"values": values{}}, "clear_on_close": v.ClearOnClose, "notify_on_close": v.NotifyOnClose,
		"root_view_id": v.root, "previous_view_id": v.previous, "app_id": s.appID, "bot_id": s.bot.botID,
		"app_installed_team_id": s.teamID,
	}
}

// Submit has somebody fill in a view that they see and send it: by action_id,
// block_id or label, options by label or value, several with commas between.
// It is an error if something is missing that must be there.
func (s *Server) Submit(id string, answers map[string]string) (Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := find(s.views, func(v *view) bool { return v.id == id && !v.closed })
	if v == nil || v.Submit == nil {
		return Delivery{}, fmt.Errorf("submit: there is no such view, or no button in it")
	}
	filled, err := s.fillIn(v, answers)
	if err != nil {
		return Delivery{}, fmt.Errorf("submit: %w", err)
	}
	o := s.interaction("view_submission", v.to)
	shown := s.renderView(v)
	shown["state"] = object{"values": filled}
	o["view"], o["response_urls"] = shown, []object{}
	d := interaction(o)
	d.view = v
	return d, nil
}

func (s *Server) fillIn(v *view, answers map[string]string) (values, error) {
	filled, taken := s.stateOf(v.blocks, nil), 0
	for _, b := range v.blocks {
		e := child(b, "element")
		if str(b, "type") != "input" {
			continue
		}
		for _, name := range []string{str(e, "action_id"), str(b, "block_id"), s.textOf(b["label"])} {
			text, ok := answers[name]
			if !ok {
				continue
			}
			value, err := s.fill(e, parts(e, text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			filled.set(str(b, "block_id"), str(e, "action_id"), value)
			taken++
			break
		}
		if optional, _ := b["optional"].(bool); !optional && empty(filled[str(b, "block_id")][str(e, "action_id")]) {
			return nil, fmt.Errorf("%s must be filled in", s.textOf(b["label"]))
		}
	}
	if taken != len(answers) {
		return nil, fmt.Errorf("not all of %v are in the view:\n%s", answers, s.renderedBlocks(v.blocks))
	}
	return filled, nil
}

// parts are the answers to an element that takes several, or the one.
func parts(e object, text string) []string {
	if _, many := stateKey(str(e, "type")); many {
		return strings.Split(text, ",")
	}
	return []string{text}
}

// CloseView has somebody close a view. The app is told if it wanted to be.
func (s *Server) CloseView(id string) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := find(s.views, func(v *view) bool { return v.id == id && !v.closed })
	if v == nil {
		panic("slacktest: there is no view " + id)
	}
	v.closed = true
	if !v.NotifyOnClose {
		return nil
	}
	o := s.interaction("view_closed", v.to)
	delete(o, "trigger_id")
	o["view"], o["is_cleared"] = s.renderView(v), false
	return []Delivery{interaction(o)}
}

// viewAnswered does with a view what the app answered; nothing closes it.
func (s *Server) viewAnswered(v *view, body []byte) {
	var a struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
		View   json.RawMessage   `json:"view"`
	}
	if len(body) > 0 && json.Unmarshal(body, &a) != nil {
		s.Note("the answer to a view is no JSON")
		return
	}
	switch a.Action {
	case "":
		v.closed = true
	case "clear":
		for _, other := range s.views {
			other.closed = other.closed || other.root == v.root
		}
	case "errors":
		s.showErrors(v, a.Errors)
	case "update", "push":
		s.nextView(v, a.Action, string(a.View))
	default:
		s.Note("there is no response_action %s", a.Action)
	}
}

// showErrors shows what is wrong beside the inputs, by their block_ids.
func (s *Server) showErrors(v *view, errors map[string]string) {
	for id := range errors {
		if find(pointers(v.blocks), func(b *object) bool { return str(*b, "block_id") == id && str(*b, "type") == "input" }) == nil {
			s.Note("there is no input %s to show an error at", id)
		}
	}
	v.errors = errors
}

func pointers[T any](all []T) []*T {
	out := make([]*T, len(all))
	for n := range all {
		out[n] = &all[n]
	}
	return out
}

func (s *Server) nextView(v *view, action, text string) {
	fields, blocks, err := s.readView(text)
	switch {
	case err != nil:
		s.Note("the view that was answered with was refused: %v", err)
	case action == "update":
		s.replace(v, fields, blocks)
	default:
		s.show(v.to, fields, blocks)
	}
}
