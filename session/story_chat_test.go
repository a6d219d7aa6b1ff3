package session

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// chat is a platform that answers at once with a message of its own, which is
// the first turn's when that begins. Each further turn has another one.
func (s *story) chat(e Effect, p *Performed) {
	var had string
	for _, v := range s.state.Threads {
		if v.Thread == *e.Thread {
			had = v.Ref
		}
	}
	switch p.Ref = ""; {
	case e.Kind == Acknowledge && e.Request.Verb == Instruct && s.state.Turns == 0 && had == "":
		p.Voice = "0.1"
	case e.Kind == Begin && strings.HasPrefix(had, "0."):
		p.Voice = fmt.Sprintf("%d.1", e.Turn)
	case e.Kind == Begin:
		p.Voice, p.Shown = fmt.Sprintf("%d.%d", e.Turn, e.Turn), ViewOf(s.state).Digest()
	case e.Kind == Say && e.Refusal && strings.HasPrefix(had, "0."):
		p.Voice = "x.1"
	}
}

// edit has somebody change the words of a request, which is called by its
// number.
func (s *story) edit(edit string) error {
	number, text, _ := strings.Cut(edit, ": ")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(s.requests) {
		return errors.New("no such request")
	}
	r := s.requests[n-1]
	before := r.Text
	r.Verb, r.Text = Instruct, text
	r.understand(text)
	s.requests[n-1], s.edited = r, true
	s.step(Event{Kind: Amended, Request: &r, Before: before})
	return nil
}

// shown is where the state stands besides in status comments.
func (s *story) shown() string {
	var b strings.Builder
	for _, v := range s.state.Threads {
		switch {
		case v.Silent:
			b.WriteString(", also in " + v.Key)
		case v.Platform == "chat" && v.Ref != "":
			b.WriteString(", in message " + v.Ref)
		}
	}
	return b.String()
}

// words of all requests whose work is not over, after an edit.
func (s *story) words() []string {
	if !s.edited {
		return nil
	}
	var all []string
	for _, e := range s.state.Pending {
		if e.Kind == Admit {
			all = append(all, "to be admitted: "+e.Request.Text)
		}
	}
	if a := s.state.Asking; a != nil {
		all = append(all, "to be answered: "+a.Request.Text)
	}
	for _, w := range s.state.Waiting {
		all = append(all, "waiting: "+w.Text)
	}
	if t := s.state.Turn; t != nil {
		for _, r := range t.Requests {
			all = append(all, "in the turn: "+r.Text)
		}
	}
	return all
}
