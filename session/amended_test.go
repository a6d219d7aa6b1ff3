package session

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAmended: an edit counts where the work has not begun, for the words alone.
func TestAmended(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := Request{ID: "c1", Thread: Thread{"chat", "room"}, By: Person{Login: "ada"}, Verb: Instruct, Text: "fix it", Repo: "acme/widgets", Ref: "message 1"}
	other := Request{ID: "c2", Thread: first.Thread, By: Person{Login: "bob"}, Verb: Instruct, Text: "fix it"}
	with := func(change func(*Request)) Request { r := first; change(&r); return r }
	admitting := func(r Request) State {
		return State{ID: "s", Pending: []Effect{{ID: "e", Kind: Admit, By: "chat", Thread: &r.Thread, Request: &r}}}
	}
	asking := func(r Request) State {
		return State{ID: "s", Asking: &Asking{Request: r, Question: Question{Text: "Where?"}}}
	}
	turn := func(stage Stage, rs ...Request) State {
		return State{ID: "s", Turns: 1, Turn: &Turn{N: 1, Stage: stage, Requests: rs, Told: stage == Ended, Outcome: &Outcome{Ending: Completed}}}
	}
	waiting := turn(Running, other)
	waiting.Waiting = []Admitted{{Request: other}, {Request: first, Context: "ENG-42"}}
	longer := with(func(r *Request) { r.Text = "fix it\n\nthe one for the login" })
	for name, tt := range map[string]struct {
		state State
		edit  Request
		// want are the words of the first request, and told whether that is told
		// to have changed too much.
		want string
		told bool
	}{
		"to be admitted":       {admitting(first), first, "fix that", false},
		"a question is open":   {asking(first), first, "fix that", false},
		"words were added":     {asking(longer), first, "fix that\n\nthe one for the login", false},
		"waiting":              {waiting, first, "fix that", false},
		"being prepared":       {turn(Preparing, first, other), first, "fix that", false},
		"joined what begins":   {turn(Preparing, other, first), first, "fix that", false},
		"the agent has it":     {turn(Running, first), first, "fix it", true},
		"being pushed":         {turn(Publishing, first), first, "fix it", true},
		"over":                 {turn(Ended, first), first, "fix it", false},
		"of another":           {admitting(first), other, "fix it", false},
		"never heard of":       {State{ID: "s"}, first, "", false},
		"another verb":         {admitting(first), with(func(r *Request) { r.Verb = Finish }), "fix it", true},
		"another repository":   {admitting(first), with(func(r *Request) { r.Repo = "acme/api" }), "fix it", true},
		"another branch":       {waiting, with(func(r *Request) { r.Branch = "topic" }), "fix it", true},
		"another model":        {turn(Preparing, first), with(func(r *Request) { r.Model = "small" }), "fix it", true},
		"another, once begun":  {turn(Running, first), with(func(r *Request) { r.Verb = Stop }), "fix it", true},
		"asked by the command": {admitting(with(func(r *Request) { r.Verb = Unclear })), first, "fix it", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edit := tt.edit
			before := edit.Text
			edit.Text = "fix that"
			raw, err := tt.state.Encode()
			if err != nil {
				t.Fatal(err)
			}
			got := Step(tt.state, Event{Kind: Amended, At: now, Request: &edit, Before: before}, testPolicy())
			if words := wordsOf(got, "c1"); words != tt.want {
				t.Errorf("the words are %q, not %q", words, tt.want)
			}
			if pendingKind(got.Pending, Say) != tt.told {
				t.Errorf("pending %+v", got.Pending)
			}
			edit.Text = "fix that at last"
			if more := Step(got, Event{Kind: Amended, At: now, Request: &edit, Before: before}, testPolicy()); tt.told && len(more.Pending) > len(got.Pending) {
				t.Errorf("told again: %+v", more.Pending)
			}
			if unchanged, _ := tt.state.Encode(); !cmp.Equal(raw, unchanged) {
				t.Error("the state that was given is another")
			}
		})
	}
}

// wordsOf is what a request says by now, wherever it is.
func wordsOf(s State, id string) string {
	for _, e := range s.Pending {
		if e.Kind == Admit && e.Request.ID == id {
			return e.Request.Text
		}
	}
	if s.Asking != nil && s.Asking.Request.ID == id {
		return s.Asking.Request.Text
	}
	for _, w := range s.Waiting {
		if w.ID == id {
			return w.Text
		}
	}
	if s.Turn != nil {
		for _, r := range s.Turn.Requests {
			if r.ID == id {
				return r.Text
			}
		}
	}
	return ""
}

// TestAmendedByAnother: an edit changes what was said in the message that is
// edited. Whoever answered a question, or asked for a retry, did not say the
// words that are worked on, in somebody else's name or in anybody's.
func TestAmendedByAnother(t *testing.T) {
	t.Parallel()
	edit := func(s *story, id, before, text string) {
		s.step(Event{Kind: Amended, Before: before, Request: &Request{
			ID: id, Thread: Thread{"talk", "room"}, By: Person{Login: "bob"}, Verb: Instruct, Text: text, At: s.now,
		}})
	}
	for _, tt := range []struct {
		name string
		// answer is bob's, and first the id of ada's message; empty: bob edits his.
		answer, first, want string
	}{
		{"of no answer", "hmm", "", "fix the test"},
		{"of the answer", "acme/api", "", "fix the test"},
		{"of the request, after no answer", "hmm", "ask1", "open a back door"},
		{"of the request, after the answer", "acme/api", "ask1", "open a back door"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := inQuestion(t)
			first := s.state.Asking.Request.ID
			s.answer("bob", Request{Text: tt.answer})
			id, before := strings.Repeat("a", s.asked), tt.answer
			if tt.first != "" {
				id, before = first, "fix the test"
			}
			edit(s, id, before, "open a back door")
			got := ""
			if a := s.state.Asking; a != nil {
				got = a.Request.Text
			} else if e, err := s.find(Admit); err == nil {
				got = e.Request.Text
			}
			if got != tt.want {
				t.Errorf("the words are %q, not %q", got, tt.want)
			}
		})
	}
}

// TestAmendedRetry: what is done again are the words of before.
func TestAmendedRetry(t *testing.T) {
	t.Parallel()
	s := State{ID: "s", Turns: 1, Turn: &Turn{N: 1, Stage: Ended, Told: true, Outcome: &Outcome{Ending: Crashed}, Requests: []Request{{Verb: Instruct, Text: "fix it"}}}}
	r := Request{ID: "again", Thread: Thread{"chat", "room"}, By: Person{Login: "bob"}, Verb: Retry}
	s = Step(s, Event{Kind: Ordered, Request: &r}, testPolicy())
	edit := r
	edit.Verb, edit.Text = Instruct, "open a back door. "
	s = Step(s, Event{Kind: Amended, Request: &edit}, testPolicy())
	if got := wordsOf(s, "again"); s.Turns != 2 || got != "fix it" {
		t.Errorf("turn %d is asked %q", s.Turns, got)
	}
}
