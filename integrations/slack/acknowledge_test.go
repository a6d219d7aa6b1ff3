package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// reactions to the message that began the thread.
func (f *floor) reactions() string {
	return strings.Join(f.Message(f.thread.channel, f.thread.root).Reactions, ", ")
}

// TestAcknowledge: who asks for work first sees the reaction and a message at
// once, once, and what is asked later has the reaction only.
func TestAcknowledge(t *testing.T) {
	t.Parallel()
	settledIn := func(f *floor) session.State {
		s := f.new()
		s.Threads[0].Ref = "x." + rootTS
		return s
	}
	showsIn := func(f *floor) session.State {
		s := f.new()
		s.Threads[0].Ref = "0." + rootTS
		return s
	}
	asking := func(f *floor) session.State {
		s := f.new()
		s.Asking = &session.Asking{Request: f.asked()}
		return s
	}
	for name, tt := range map[string]struct {
		verb  session.Verb
		state func(*floor) session.State
		posts bool
	}{
		"the first":                     {session.Instruct, (*floor).new, true},
		"to finish":                     {session.Finish, (*floor).new, true},
		"after a refusal":               {session.Instruct, settledIn, true},
		"the second before work begins": {session.Instruct, showsIn, false},
		"the answer to a question":      {session.Instruct, asking, false},
		"during a turn":                 {session.Instruct, (*floor).working, false},
		"nothing to be worked on":       {session.Help, (*floor).new, false},
		"stop":                          {session.Stop, (*floor).working, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFloor(t, slacktest.Options{})
			j := f.seen(tt.verb, ref{kind: refMessage, ts: f.thread.root}, tt.state(f))
			done := f.do(j)
			if twice := f.do(again(j)); twice != done {
				t.Errorf("performed twice: %+v, then %+v", done, twice)
			}
			if got := f.reactions(); got != ":eyes: ship" {
				t.Errorf("reactions %q", got)
			}
			lines := f.lines()
			if !tt.posts {
				if lines != nil || done.Voice != "" {
					t.Errorf("posted %q, voice %q", lines, done.Voice)
				}
				return
			}
			has := parseShown(done.Voice)
			if len(lines) != 1 || !strings.HasPrefix(lines[0], "👀 Thanks, I'm looking into this.") || !has.unbound() || done.Shown != "" {
				t.Errorf("posted %q: %+v", lines, done)
			}
		})
	}
}

// TestAcknowledgeWhereWeAreNot: a shortcut works in every channel, and the
// message may be gone.
func TestAcknowledgeWhereWeAreNot(t *testing.T) {
	t.Parallel()
	t.Run("a channel of others", func(t *testing.T) {
		t.Parallel()
		f := newFloor(t, slacktest.Options{})
		channel := f.CreateChannel(slacktest.Channel{Name: "others", NoApp: true})
		ts, _ := f.Post(slacktest.Said{Channel: "others", By: "ada", Text: "the login is broken"})
		f.thread = thread{f.TeamID(), channel, ts}
		if done := f.do(f.seen(session.Instruct, ref{kind: refShortcut, ts: ts}, f.new())); done.Voice != "" {
			t.Errorf("voice %q", done.Voice)
		}
		if p := f.fails(f.seen(session.Instruct, ref{kind: refMessage, ts: ts}, f.new())); !p.Gone {
			t.Errorf("a mention where we are not any more: %+v", p)
		}
	})
	t.Run("a message that is deleted", func(t *testing.T) {
		t.Parallel()
		f := newFloor(t, slacktest.Options{})
		ts, _ := f.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "@ship stop", Thread: f.thread.root})
		f.Delete(slacktest.Change{Channel: "eng", TS: ts, By: "ada"})
		f.do(f.seen(session.Stop, ref{kind: refMessage, ts: ts}, f.working()))
	})
	t.Run("a command without a thread", func(t *testing.T) {
		t.Parallel()
		f := newFloor(t, slacktest.Options{})
		f.do(f.seen(session.Instruct, ref{kind: refCommand}, f.working()))
		if n := f.Calls("reactions.add"); n != 0 {
			t.Errorf("%d reactions", n)
		}
	})
	t.Run("an operator's order", func(t *testing.T) {
		t.Parallel()
		f := newFloor(t, slacktest.Options{})
		j := f.job(session.Acknowledge, f.new())
		if done := f.do(j); done.Voice != "" || f.Calls("chat.postMessage") != 0 {
			t.Errorf("%+v", done)
		}
	})
}

// TestAcknowledgePress: the buttons that were pressed go, and nothing else
// happens.
func TestAcknowledgePress(t *testing.T) {
	t.Parallel()
	for verb, gone := range map[session.Verb]bool{session.Instruct: true, session.Ready: true, session.Stop: false, session.Retry: false} {
		t.Run(string(verb), func(t *testing.T) {
			t.Parallel()
			f := newFloor(t, slacktest.Options{})
			s := f.working()
			s.Turn.Stage = session.Ended
			w, err := f.performer.begin(f.job(session.Ask, s))
			if err != nil {
				t.Fatal(err)
			}
			ts, err := w.post(t.Context(), Asking, "question", posed(blockID(f.thread.team, ofTurn(nameChoose, 1)), "Which?", choices(2, 10))[0])
			if err != nil {
				t.Fatal(err)
			}
			j := f.seen(verb, ref{kind: refButton, ts: ts}, s)
			f.do(j)
			f.do(again(j))
			if got := len(f.Message("eng", ts).Controls) == 0; got != gone {
				t.Errorf("the buttons went: %v", got)
			}
			if len(f.lines()) != 1 || f.reactions() != "" {
				t.Errorf("said %q, reacted %q", f.lines(), f.reactions())
			}
		})
	}
}

// TestAcknowledgePressPersists: buttons that nobody takes off look as if they could
// be pressed for good, so trouble that passes is waited for, and no other.
func TestAcknowledgePressPersists(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"conversations.replies", "chat.update"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := newFloor(t, slacktest.Options{})
			s := f.working()
			s.Turn.Stage = session.Ended
			w, err := f.performer.begin(f.job(session.Ask, s))
			if err != nil {
				t.Fatal(err)
			}
			ts, err := w.post(t.Context(), Asking, "question", posed(blockID(f.thread.team, ofTurn(nameChoose, 1)), "Which?", choices(2, 10))[0])
			if err != nil {
				t.Fatal(err)
			}
			f.Inject(slacktest.Fault{On: method, Status: http.StatusBadGateway, Times: tidyTries + 1})
			j := f.seen(session.Instruct, ref{kind: refButton, ts: ts}, s)
			for j.Effect.Attempts = range tidyTries {
				_, err := f.performer.Perform(t.Context(), j)
				if p, ok := errors.AsType[*session.Problem](err); !ok || !p.Again {
					t.Errorf("attempt %d: %v", j.Effect.Attempts+1, err)
				}
			}
			j.Effect.Attempts = tidyTries
			f.do(j) // lets go of it
			if len(f.Message("eng", ts).Controls) == 0 {
				t.Error("nothing was in the way")
			}
			j.Effect.Attempts = 1
			f.do(again(j))
			if len(f.Message("eng", ts).Controls) > 0 {
				t.Error("the buttons stayed")
			}
		})
	}
}

// TestAcknowledgeAnswerLost: nothing is there twice, and the message is known.
func TestAcknowledgeAnswerLost(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"reactions.add", "chat.postMessage"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := newFloor(t, slacktest.Options{})
			f.Inject(slacktest.Fault{On: method, Lost: true})
			done := f.do(f.seen(session.Instruct, ref{kind: refMessage, ts: f.thread.root}, f.new()))
			lines := f.lines()
			if len(lines) != 1 || f.reactions() != ":eyes: ship" || !parseShown(done.Voice).unbound() {
				t.Errorf("%q, %q: %+v", lines, f.reactions(), done)
			}
		})
	}
}

// TestAcknowledgeDoesNotInsist: whatever is wrong with Slack, it is tried again
// once at most, and what waits behind it waits some seconds.
func TestAcknowledgeDoesNotInsist(t *testing.T) {
	t.Parallel()
	always := func(f slacktest.Fault) slacktest.Fault { f.Times = -1; return f }
	for name, faults := range map[string][]slacktest.Fault{
		"hangs":   nil,
		"limited": {always(slacktest.Limited("reactions.add", time.Minute)), always(slacktest.Limited("chat.postMessage", time.Minute))},
		"broken":  {{Status: http.StatusBadGateway, Times: -1}},
		"failing": {refusing("reactions.add", "internal_error"), refusing("chat.postMessage", "internal_error")},
		"blocks":  {refusing("reactions.add", "missing_scope"), refusing("chat.postMessage", "invalid_arguments")},
	} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, first %v", name, first), func(t *testing.T) {
				t.Parallel()
				f := newFloor(t, slacktest.Options{})
				for _, fault := range faults {
					f.Inject(fault)
				}
				synctest.Test(t, func(t *testing.T) {
					f.inBubble(t).hangs = name == "hangs"
					state := f.working()
					if first {
						state = f.new()
					}
					j := f.seen(session.Instruct, ref{kind: refMessage, ts: f.thread.root}, state)
					begun := time.Now()
					_, err := f.performer.Perform(t.Context(), j)
					if took := time.Since(begun); took > ackTimeout+time.Second {
						t.Errorf("the first time took %s: %v", took, err)
					}
					begun = time.Now()
					done := f.do(again(j))
					if took := time.Since(begun); took > ackTimeout+time.Second || done.Voice != "" {
						t.Errorf("the second time took %s, voice %q", took, done.Voice)
					}
				})
			})
		}
	}
}

// TestAcknowledgeIsQuick: people see both within a moment, even when Slack takes
// its time over each request.
func TestAcknowledgeIsQuick(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	f.do(f.seen(session.Instruct, ref{kind: refMessage, ts: f.thread.root}, f.new()))
	methods := []string{"reactions.add", "chat.postMessage", "conversations.replies", "users.info", "auth.test", "chat.update", "agents.sessions.setStatus"}
	n := 0
	for _, m := range methods {
		n += f.Calls(m)
	}
	if n != 2 {
		t.Errorf("%d requests, want the reaction and the message", n)
	}
}

// TestAcknowledgeShutdown: what was cut off by our own end is not given up.
func TestAcknowledgeShutdown(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	f.Inject(slacktest.Fault{Hang: true, Times: -1, Do: func(*http.Request) { cancel(session.ErrShutdown) }})
	j := again(f.seen(session.Instruct, ref{kind: refMessage, ts: f.thread.root}, f.new()))
	if _, err := f.performer.Perform(ctx, j); !errors.Is(err, session.ErrShutdown) {
		t.Errorf("%v", err)
	}
}

// TestBelated: the message of an acknowledgement was posted when nobody could
// tell, and things go on before that is tried again. It is made use of, or not
// left there to say for ever that work is about to begin.
func TestBelated(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		since func(*floor, *session.State)
		want  string // the line that is there in the end
	}{
		"asked back": {func(f *floor, s *session.State) {
			s.Pending, s.Asking = nil, &session.Asking{Request: f.asked(), Question: session.Question{Text: "Which?"}}
		}, "Waiting to hear which repository"},
		"refused": {func(_ *floor, s *session.State) { s.Pending = nil }, ""},
		"begun": {func(f *floor, s *session.State) {
			*s = f.working()
			s.Threads[0].Ref = "1." + rootTS
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFloor(t, slacktest.Options{})
			j := f.seen(session.Instruct, ref{kind: refMessage, ts: f.thread.root}, f.new())
			f.Inject(slacktest.Fault{On: "chat.postMessage", Lost: true})
			f.Inject(slacktest.Fault{On: "conversations.replies", Lost: true})
			f.fails(j)
			f.pass(least)
			tt.since(f, &j.State)
			for range 2 {
				done := f.do(again(j))
				if lines := strings.Join(f.lines(), "\n"); (tt.want == "") != (lines == "") || !strings.Contains(lines, tt.want) || (done.Voice != "") != (tt.want != "") {
					t.Errorf("it reads %q, voice %q", lines, done.Voice)
				}
				f.pass(least)
			}
		})
	}
}

// TestTooLate: nothing was posted in time, and the request was refused since.
func TestTooLate(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	j := f.seen(session.Instruct, ref{kind: refMessage, ts: f.thread.root}, f.new())
	j.State.Pending = nil
	if done := f.do(again(j)); done.Voice != "" || f.lines() != nil {
		t.Errorf("it reads %q, voice %q", f.lines(), done.Voice)
	}
}
