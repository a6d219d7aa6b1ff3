package slack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// noticed is a session that shows that it was asked for something, and nothing
// more yet.
func (f *floor) noticed() session.State {
	s := f.new()
	return f.kept(s, f.do(f.seen(session.Instruct, ref{kind: refMessage, ts: f.thread.root}, s)))
}

// refused is the job of saying no.
func (f *floor) refused(s session.State) session.Job {
	j := f.job(session.Say, s)
	j.Effect.Text, j.Effect.Refusal = "You may not do that. Ask `/ship help`.", true
	return j
}

// TestSay: in the words of a conversation, and neither a mention nor a channel
// wakes up by it.
func TestSay(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	done := f.do(f.saying("Reply `/ship retry`, says <!channel> & @here."))
	if want := []string{"Reply `retry`, says <!channel> & @\u200bhere."}; !strings.Contains(f.lines()[0], "Reply `retry`") || strings.Contains(f.everywhere()[0].Text, "<!") || done.Voice != "" {
		t.Errorf("it reads %q, want %q; %+v", f.lines(), want, done)
	}
}

// TestRefusalSettles: what was shown to wait for a turn does not go on doing so.
func TestRefusalSettles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*session.State)
		want   bool
	}{
		"nothing else":    {func(*session.State) {}, true},
		"another waits":   {func(s *session.State) { s.Pending = []session.Effect{{ID: "x", Kind: session.Admit}} }, false},
		"a question":      {func(s *session.State) { s.Asking = &session.Asking{} }, false},
		"a turn":          {func(s *session.State) { s.Turns = 1 }, false},
		"a turn to come":  {func(s *session.State) { s.Waiting = []session.Admitted{{}} }, false},
		"settled already": {func(s *session.State) { s.Threads[0].Ref = "x" + s.Threads[0].Ref[1:] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := quiet(t)
			s := f.noticed()
			had := f.lines()
			tt.change(&s)
			j := f.refused(s)
			f.Inject(slacktest.Fault{On: "chat.update", Lost: true})
			want := []string{had[0], "You may not do that. Ask `help`."}
			if tt.want {
				want[0] = notBegun
				if p := f.fails(j); !p.Again {
					t.Errorf("%+v", p)
				}
			}
			for range 2 {
				done := f.do(again(j))
				if settles := strings.HasPrefix(done.Voice, "x."); settles != tt.want {
					t.Errorf("%+v", done)
				}
			}
			if got := f.lines(); !slices.Equal(got, want) {
				t.Errorf("it reads %q, want %q", got, want)
			}
			if m := f.everywhere()[0]; tt.want && len(m.Controls) > 0 {
				t.Errorf("there is %q to press", m.Controls)
			}
		})
	}
}

// TestRefusalOfWhatIsGone: somebody deleted the message that waited.
func TestRefusalOfWhatIsGone(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	s := f.noticed()
	f.Delete(slacktest.Change{Channel: "eng", TS: f.everywhere()[0].TS, By: "ship"})
	if done := f.do(f.refused(s)); !strings.HasPrefix(done.Voice, "x.") || len(f.lines()) != 1 {
		t.Errorf("%+v, %q", done, f.lines())
	}
}

// TestSpentButtons: a button that did what it can, or whose turn is over, is
// taken off, and one whose press was refused is left to others.
func TestSpentButtons(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		block   string
		refusal bool
		left    bool
	}{
		"remembered":         {nameRemember, false, false},
		"not for them":       {nameRemember, true, true},
		"a turn of the past": {ofTurn(nameDo, 1), false, false},
		"an old question":    {ofTurn(nameChoose, 1), false, false},
		"the newest turn":    {ofTurn(nameDo, 2), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := quiet(t)
			s := f.working()
			s.Turns, s.Turn.N = 2, 2
			w := f.works(f.job(session.Say, s))
			m := told("Choose")[0]
			m.blocks = append(m.blocks, api.NewActionBlock(blockID(team, tt.block), rememberButton("acme/widgets")))
			ts, err := w.post(t.Context(), Settling, "old", m)
			if err != nil {
				t.Fatal(err)
			}
			f.pass(least)
			j := f.saying("So it is.")
			j.State, j.Effect.Refusal = s, tt.refusal
			j.Effect.Ref = ref{kind: refButton, ts: ts, name: tt.block, user: f.PersonID("ada")}.String()
			f.do(j)
			if left := len(f.Message(f.thread.channel, ts).Controls) > 0; left != tt.left {
				t.Errorf("the button is left: %t", left)
			}
		})
	}
}

// TestRefusalsMakeWay: who is refused again and again leaves room to tell others
// how it ended.
func TestRefusalsMakeWay(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	s := f.working()
	for wait := time.Duration(0); wait == 0; {
		var err error
		if wait, err = f.performer.app.governor.try(t.Context(), Thinking, f.works(f.saying("")).call("chat.postMessage")); err != nil {
			t.Fatal(err)
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := f.performer.Perform(soon, f.refused(s)); !errors.Is(err, context.DeadlineExceeded) || len(f.lines()) != 0 {
		t.Errorf("%v, %q", err, f.lines())
	}
	j := f.saying("Stopped.")
	j.Effect.ID = "told"
	if f.do(j); !slices.Equal(f.lines(), []string{"Stopped."}) {
		t.Errorf("it reads %q", f.lines())
	}
}
