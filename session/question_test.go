package session

import (
	"strings"
	"testing"
	"time"
)

// inQuestion is a session that ada asked something, and that asks her back
// which of two repositories is meant.
func inQuestion(t *testing.T) *story {
	t.Helper()
	s := newStory()
	for _, line := range []string{"ada asks: talking: fix the test", "done acknowledge", "done admit where", "done ask"} {
		if err := s.event(line); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *story) answer(who string, r Request) {
	s.asked++
	r.ID, r.Thread, r.By = strings.Repeat("a", s.asked), Thread{"talk", "room"}, Person{Login: who}
	r.Verb, r.Early, r.At = Instruct, true, s.now
	s.step(Event{Kind: Asked, Request: &r})
}

// TestAnswerOfAnother: others may say which of the repositories that were
// offered is meant. To lead the work anywhere else, with the right of the one
// who asked for it, is up to that one alone.
func TestAnswerOfAnother(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		who  string
		r    Request
		want string
	}{
		{"bob", Request{Text: "the api"}, "acme/api"},
		{"bob", Request{Repo: "Acme/API"}, "Acme/API"},
		{"bob", Request{Text: "the api", Repo: "ada/dotfiles"}, ""},
		{"bob", Request{Repo: "ada/dotfiles"}, ""},
		{"ada", Request{Repo: "ada/dotfiles"}, "ada/dotfiles"},
	} {
		s := inQuestion(t)
		s.answer(tt.who, tt.r)
		e, err := s.find(Admit)
		switch {
		case tt.want == "" && (err == nil || s.state.Asking == nil):
			t.Errorf("%s answers %+v: the work goes to %q", tt.who, tt.r, e.Request.Repo)
		case tt.want != "" && (err != nil || e.Request.Repo != tt.want || e.Request.By.Login != "ada"):
			t.Errorf("%s answers %+v: %v, %+v, want ada's request for %s", tt.who, tt.r, err, e.Request, tt.want)
		}
	}
}

// TestAnswersAreBounded: whoever goes on talking beside the question does not
// fill the store.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	s := inQuestion(t)
	for range 40 {
		s.now = s.now.Add(time.Second)
		s.answer("ada", Request{Text: strings.Repeat("é", 16<<10)})
		for _, kind := range []EffectKind{Acknowledge, Ask} {
			if err := s.event("done " + string(kind)); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept := s.state.Asking.Request.Text
	if b, err := s.state.Encode(); err != nil || len(b) > 128<<10 {
		t.Errorf("the state has %d bytes, %v", len(b), err)
	}
	if !strings.HasPrefix(kept, "fix the test\n\n") || !strings.Contains(kept, "é") || strings.ToValidUTF8(kept, "") != kept {
		t.Errorf("what was asked begins %.40q", kept)
	}
}

// TestAnswersAreAcknowledged: once, be it a message or the press of a button,
// which is not acknowledged before it is admitted.
func TestAnswersAreAcknowledged(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		s := inQuestion(t)
		s.asked++
		s.step(Event{Kind: Asked, Request: &Request{
			ID: "answer", Thread: Thread{"talk", "room"}, By: Person{Login: "ada"}, Verb: Instruct, Early: early,
			Text: "acme/api", Ref: "here", At: s.now,
		}})
		seen := 0
		for range 2 { // before the admission, and after it
			if e, err := s.find(Acknowledge); err == nil {
				seen++
				if e.Ref != "here" {
					t.Errorf("early %t: %q is acknowledged", early, e.Ref)
				}
				s.step(Event{Kind: Done, Performed: &Performed{Effect: e.ID}})
			}
			if e, err := s.find(Admit); err == nil {
				s.step(Event{Kind: Done, Performed: &Performed{Effect: e.ID, Admission: &Admission{
					By: Person{Login: "ada"}, Repo: Repo{Platform: "hub", Name: "acme/api", Key: "1"}, Talks: true,
				}}})
			}
		}
		if seen != 1 {
			t.Errorf("early %t: the answer is acknowledged %d times", early, seen)
		}
	}
}
