package slacktest

import (
	"fmt"
	"slices"
)

// fill is the state of an element after somebody filled it in.
func (s *Server) fill(e object, want []string) (object, error) {
	kind := str(e, "type")
	key, many := stateKey(kind)
	var picked []any
	for _, name := range want {
		one, err := s.pick(e, name)
		if err != nil {
			return nil, err
		}
		picked = append(picked, one)
	}
	switch {
	case many:
		return object{"type": kind, key: picked}, nil
	case len(picked) != 1:
		return nil, fmt.Errorf("it takes one answer, not %d", len(picked))
	}
	return object{"type": kind, key: picked[0]}, nil
}

// stateKey is where an element keeps its state, and whether that is a list.
func stateKey(kind string) (key string, many bool) {
	switch kind {
	case "static_select", "external_select", "radio_buttons", "overflow":
		return "selected_option", false
	case "multi_static_select", "checkboxes":
		return "selected_options", true
	case "users_select":
		return "selected_user", false
	case "multi_users_select":
		return "selected_users", true
	case "conversations_select":
		return "selected_conversation", false
	case "multi_conversations_select":
		return "selected_conversations", true
	case "channels_select":
		return "selected_channel", false
	case "multi_channels_select":
		return "selected_channels", true
	case "datepicker":
		return "selected_date", false
	case "timepicker":
		return "selected_time", false
	case "datetimepicker":
		return "selected_date_time", false
	}
	return "value", false
}

// pick is one answer, such as the option of that name.
func (s *Server) pick(e object, name string) (any, error) {
	switch key, _ := stateKey(str(e, "type")); key {
	case "selected_option", "selected_options":
		all := options(e)
		at := slices.IndexFunc(all, func(o object) bool { return str(o, "value") == name || s.textOf(o["text"]) == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no option %q", name)
		}
		return all[at], nil
	case "selected_user", "selected_users":
		return s.person(name).id, nil
	case "selected_conversation", "selected_conversations", "selected_channel", "selected_channels":
		return s.place(name).id, nil
	}
	return name, checkLength(e, name)
}

// checkLength is what Slack checks before it sends a text.
func checkLength(e object, text string) error {
	least, _ := e["min_length"].(float64)
	most, ok := e["max_length"].(float64)
	if n := float64(length(text)); n < least || ok && n > most {
		return fmt.Errorf("it takes between %v and %v characters", least, most)
	}
	return nil
}

// initial is the state of an element that nobody touched.
func initial(e object) object {
	kind := str(e, "type")
	key, many := stateKey(kind)
	names := map[string]string{"value": "initial_value", "selected_option": "initial_option", "selected_options": "initial_options"}
	value := e[names[key]]
	if value == nil && many {
		value = []any{}
	}
	return object{"type": kind, key: value}
}

// stateOf is what all elements of some blocks hold.
func (s *Server) stateOf(blocks []object, chosen values) values {
	all := values{}
	for _, b := range blocks {
		for _, e := range interactive(b) {
			kind := str(e, "type")
			if kind == "button" || kind == "overflow" {
				continue
			}
			id, action := str(b, "block_id"), str(e, "action_id")
			value, ok := chosen[id][action]
			if !ok {
				value = initial(e)
			}
			all.set(id, action, value)
		}
	}
	return all
}

// empty says whether nothing was filled in.
func empty(state object) bool {
	key, _ := stateKey(str(state, "type"))
	switch v := state[key].(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}
