package slacktest

import (
	"regexp"
	"slices"
)

// emoji is what the name of one looks like, without colons.
var emoji = regexp.MustCompile(`^[a-z0-9_+'-]+(::skin-tone-[2-6])?$`)

func (s *Server) addReaction(in args) (object, error) {
	m, err := s.reactable(in)
	if err != nil {
		return nil, err
	}
	if !m.react(in.get("name"), s.bot) {
		return nil, refuse("already_reacted")
	}
	return object{}, nil
}

func (s *Server) removeReaction(in args) (object, error) {
	m, err := s.reactable(in)
	if err != nil {
		return nil, err
	}
	if !m.unreact(in.get("name"), s.bot) {
		return nil, refuse("no_reaction")
	}
	return object{}, nil
}

// reactable finds a message that the app may react to.
func (s *Server) reactable(in args) (*message, error) {
	c, err := s.writable(in.get("channel"))
	if err != nil {
		return nil, err
	}
	if !isTS(in.get("timestamp")) {
		return nil, refuse("bad_timestamp")
	}
	m := c.find(in.get("timestamp"))
	switch {
	case m == nil || m.tomb:
		return nil, refuse("message_not_found")
	case !emoji.MatchString(in.get("name")):
		return nil, refuse("invalid_name")
	}
	return m, nil
}

// react says whether the reaction is new.
func (m *message) react(name string, by *user) bool {
	r := find(m.reactions, func(r *reaction) bool { return r.name == name })
	if r == nil {
		r = &reaction{name: name}
		m.reactions = append(m.reactions, r)
	}
	if slices.Contains(r.by, by) {
		return false
	}
	r.by = append(r.by, by)
	return true
}

// unreact says whether the reaction was there.
func (m *message) unreact(name string, by *user) bool {
	r := find(m.reactions, func(r *reaction) bool { return r.name == name })
	if r == nil || !slices.Contains(r.by, by) {
		return false
	}
	r.by = slices.DeleteFunc(r.by, func(u *user) bool { return u == by })
	m.reactions = slices.DeleteFunc(m.reactions, func(r *reaction) bool { return len(r.by) == 0 })
	return true
}
