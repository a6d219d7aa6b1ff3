package session

import (
	stdcmp "cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"ship/sandbox/lifecycle"
)

var update = flag.Bool("update", false, "write the stories' effects anew")

// TestStories plays testdata/stories: what happens to a session, a line each,
// and under each line what the session does about it.
//
//	> alice asks: fix the test        a request
//	> alice asks: talking: fix it     one in a conversation
//	> alice asks: chatting: fix it    one where a message of ours moves along
//	> alice edits 1: fix that         the words of the first request are others
//	> done admit                      the effect of that kind succeeded
//	> broke run again                 it failed; again, lost or for good
//	> replay run                      the one that was given up is replayed
//	> wait 1h                         time passes
//	> vanished                        the provider does not have the box that is on record
//	> vanished before                 it did not have the one that was on record before
//	> paid 4.2                        so much money of the turn is spent
//	> today 8 of 10, 20 of 50         what alice and all have spent on this day
func TestStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/stories/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			playFile(t, file)
		})
	}
}

func playFile(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range a.Files {
		told, err := newStory().play(string(f.Data))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if *update {
			a.Files[i].Data = []byte(told)
			continue
		}
		if diff := cmp.Diff(string(f.Data), told); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// story plays one session.
type story struct {
	state  State
	policy Policy
	now    time.Time
	asked  int
	// requests in the order in which they were made.
	requests []Request
	// edited: the words of a request are others since the last event.
	edited bool
	// today is what admissions and progress tell; nil: nothing.
	today  *Today
	record LostBox           // the last that was told to be gone
	known  map[string]string // effect ids and what they looked like
	broken map[EffectKind]DeadLetter
}

func testPolicy() Policy {
	return Policy{
		Model: "acme/large", Models: []string{"acme/large", "acme/small"},
		BudgetUSD: 5, MaxBudgetUSD: 20, Extend: true, BoxUSDPerHour: 3.6, TurnTimeout: time.Hour, Boxes: lifecycle.Default(),
		Pace: func(platform string, _ time.Duration) Pace {
			switch platform {
			case "talk":
				return Pace{Every: 10 * time.Second, Silence: 10 * time.Minute}
			case "chat":
				return Pace{Every: 5 * time.Second, Least: 3 * time.Second}
			}
			return Pace{Every: 10 * time.Second}
		},
		Help:   func(string) string { return "HELP" },
		Status: func(_ string, v View) string { return "STATUS " + string(v.Phase) },
	}
}

func newStory() *story {
	return &story{
		state: State{ID: "gh.1.7"}, policy: testPolicy(), known: map[string]string{}, broken: map[EffectKind]DeadLetter{},
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func (s *story) play(script string) (string, error) {
	var b strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "> "):
			if err := s.event(strings.TrimPrefix(line, "> ")); err != nil {
				return "", fmt.Errorf("%q: %w", line, err)
			}
			fmt.Fprintln(&b, line)
			b.WriteString(s.followed())
		case strings.HasPrefix(line, "  "): // told anew
		default:
			fmt.Fprintln(&b, line)
		}
	}
	return b.String(), nil
}

// followed lists the effects that are new, changed or gone, and the state.
func (s *story) followed() string {
	var b strings.Builder
	seen := map[string]string{}
	for _, e := range s.state.Pending {
		text := describe(e, s.now)
		seen[e.ID] = text
		if s.known[e.ID] != text {
			fmt.Fprintf(&b, "  %s\n", text)
		}
	}
	s.known = seen
	for _, words := range s.words() {
		fmt.Fprintf(&b, "  : %q\n", words)
	}
	fmt.Fprintf(&b, "  = %s\n", s.stateLine())
	return b.String()
}

func (s *story) stateLine() string {
	if s.state.Turn == nil {
		return "no turn" + s.shown()
	}
	line := fmt.Sprintf("turn %d %s", s.state.Turn.N, phaseOf(*s.state.Turn))
	if o := s.state.Turn.Outcome; o != nil {
		line += ", " + string(o.Ending)
		if o.Say != "" {
			line += ": " + o.Say
		}
	}
	if n := len(s.state.Waiting); n > 0 {
		line += fmt.Sprintf(", %d waiting", n)
	}
	return line + s.shown()
}

func describe(e Effect, now time.Time) string {
	text := string(e.Kind) + " by " + e.By
	if e.Check != nil {
		text += fmt.Sprintf(" %s %s", e.Check.SHA, stdcmp.Or(e.Check.Conclusion, "in progress"))
	}
	if e.To != "" {
		text += " to " + string(e.To)
	}
	if e.Kind == Admit && e.Request.Repo != "" {
		text += " for " + e.Request.Repo
	}
	if e.Text != "" {
		text += fmt.Sprintf(" %q", e.Text)
	}
	if d := e.Due.Sub(now); !e.Due.IsZero() && d > 0 {
		if e.Attempts > 0 {
			return text + fmt.Sprintf(" (attempt %d, later)", e.Attempts+1)
		}
		text += " in " + d.Round(time.Second).String()
	}
	return text
}

func (s *story) event(line string) error {
	s.edited = false
	if who, text, ok := strings.Cut(line, " asks: "); ok {
		return s.ask(who, text)
	}
	if _, edit, ok := strings.Cut(line, " edits "); ok {
		return s.edit(edit)
	}
	words := strings.Fields(line)
	switch words[0] {
	case "done", "broke":
		e, err := s.find(EffectKind(words[1]))
		if err != nil {
			return err
		}
		if words[0] == "done" {
			s.step(Event{Kind: Done, Performed: s.performed(e, words[2:])})
		} else {
			how := strings.Join(words[2:], " ")
			d := DeadLetter{ID: "1", Session: s.state.ID, Effect: &e}
			d.remember(s.state.Turn)
			s.broken[e.Kind] = d
			s.step(Event{Kind: Broke, Failed: &Failed{
				Effect: e.ID, Say: "It broke.", Err: "broken", Again: how == "again", Lost: how == "lost", Gone: how == "gone",
			}})
		}
	case "replay":
		d, ok := s.broken[EffectKind(words[1])]
		if !ok {
			return errors.New("no such effect broke")
		}
		s.step(d.Replay().Event)
	case "wait":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return err
		}
		s.now = s.now.Add(d)
		s.step(Event{Kind: Tick})
	case "vanished":
		return s.vanish(len(words) > 1)
	case "taken":
		s.step(Event{Kind: Taken})
	case "closed":
		s.step(Event{Kind: Closed})
	case "paid":
		return s.paid(words[1])
	case "today":
		return s.spentToday(strings.Join(words[1:], " "))
	case "moved":
		s.step(Event{Kind: Moved, Progress: &Progress{Doing: strings.Join(words[1:], " ")}})
	default:
		return errors.New("not a line of a story")
	}
	return nil
}

// vanish tells that the box is gone. What is told of a record as it was before
// is about another box, or an earlier time of this one.
func (s *story) vanish(before bool) error {
	if box := s.state.OnRecord(); box != nil && !before {
		s.record = *box
	}
	if s.record.Box == "" {
		return errors.New("no box was on record")
	}
	s.step(Event{Kind: Vanished, Lost: &s.record})
	return nil
}

func (s *story) step(e Event) {
	e.At = s.now
	s.state = Step(s.state, e, s.policy)
}

// ask understands "stop", "model small" and the like; anything else instructs.
// A "talking: " before it asks where people are spoken with, and a "late: "
// before that asked it a minute ago.
func (s *story) ask(who, text string) error {
	s.asked++
	r := Request{
		ID: fmt.Sprintf("c%d", s.asked), Thread: Thread{"github", "issue"}, By: Person{Login: who},
		Ref: fmt.Sprintf("comment %d", s.asked), Verb: Instruct, Text: text, At: s.now,
	}
	if rest, ok := strings.CutPrefix(text, "talking: "); ok {
		text = rest
		r.Text, r.Thread, r.Early = rest, Thread{"talk", "room"}, rest != "withdraw"
	}
	if rest, ok := strings.CutPrefix(text, "chatting: "); ok {
		text = rest
		r.Text, r.Thread, r.Early = rest, Thread{"chat", "room"}, true
	}
	if rest, ok := strings.CutPrefix(text, "late: "); ok {
		text, r.Text, r.At = rest, rest, s.now.Add(-time.Minute)
	}
	if rest, ok := strings.CutPrefix(text, "inline: "); ok {
		r.Text, r.Quote, r.Inline = rest, "a diff", true
	}
	r.understand(text)
	s.requests = append(s.requests, r)
	s.step(Event{Kind: Asked, Request: &r})
	return nil
}

func (r *Request) understand(text string) {
	verb, arg, _ := strings.Cut(text, " ")
	switch Verb(verb) {
	case Stop, Retry, Status, Help, Model, Budget, Ready, Finish, Withdraw, Remember:
		r.Verb, r.Text = Verb(verb), arg
	}
}

func (s *story) find(k EffectKind) (Effect, error) {
	for _, e := range s.state.Pending {
		if e.Kind == k {
			return e, nil
		}
	}
	return Effect{}, fmt.Errorf("no %s is pending", k)
}

// performed makes a plausible outcome; words vary it.
func (s *story) performed(e Effect, words []string) *Performed {
	p := &Performed{Effect: e.ID, Ref: "ref"}
	word := strings.Join(words, " ")
	switch e.Kind {
	case Admit:
		p.Admission = admission(e, word)
		if word == "known" {
			p.Admission.Today = s.today
		}
	case Prepare:
		p.Prepared = &Prepared{Box: "box", Head: "base1", Fresh: true}
		if s.state.PR != nil {
			p.Prepared.Head = s.state.Head
		}
	case Run:
		p.Turn = &Outcome{Ending: Completed, Answer: "Fixed.", Served: len(s.state.Turn.Requests), Usage: Usage{Calls: 3, USD: 0.5}}
		switch word {
		case "":
		case "too early":
			p.Turn.Served--
		case "out of turn", "out of person", "out of day":
			p.Turn.Ending, p.Turn.Say, p.Turn.Limit = Spent, "It ran out.", Limit(words[2])
		case "asking":
			p.Turn.Question = &Question{Text: "Which one?", Choices: []Choice{{Value: "A"}, {Value: "B"}}}
		default:
			p.Turn.Ending, p.Turn.Say = Ending(word), "What happened and what to do."
		}
	case Publish:
		p.Published = &Published{Head: fmt.Sprintf("head%d", s.state.Turns), Changed: true, Files: 1}
		if word == "nothing" {
			p.Published = &Published{Head: s.state.Head}
		}
	case Open:
		p.PR = &PullRequest{Number: 8, URL: "https://x/8", Draft: true}
	case Tend:
		if word != "nothing" {
			p.Tended = Tending(s.state, s.policy.Boxes, s.now, word == "cannot")
		}
	case Report:
		p.Shown = ViewOf(s.state).Digest()
	}
	if e.By == "chat" {
		s.chat(e, p)
	}
	return p
}

func admission(e Effect, word string) *Admission {
	a := &Admission{By: e.Request.By, Repo: Repo{Platform: "github", Name: "acme/widgets", Key: "k"}, Base: "main", Title: "Tests fail on Monday"}
	a.Talks = e.Request.Thread.Platform != "github"
	switch word {
	case "where":
		*a = Admission{By: a.By, Question: &Question{Text: "Where?", Choices: []Choice{{Value: "acme/widgets"}, {Value: "acme/api", Label: "the API"}}}}
	case "noted":
		*a = Admission{By: a.By, Note: "That is over."}
	case "linked":
		a.Links = []Thread{{"issues", "ENG-42"}}
	case "void":
		*a = Admission{Void: true}
	case "stranger":
		a.Refusal, a.Stranger = "You may not.", true
	case "refused":
		a.Refusal = "That cannot be done."
	case "elsewhere":
		a.Forward = "gh.1.3"
	case "on a pull request":
		a.PR, a.Branch, a.Head = &PullRequest{Number: 7, Draft: true}, "topic", "sha0"
	}
	return a
}
