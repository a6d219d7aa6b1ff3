package slack

import (
	"strings"
	"testing"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// TestBegin: the message that acknowledged the request is the turn's, and a
// later turn has one of its own.
func TestBegin(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	noticed := f.do(f.seen(session.Instruct, ref{kind: refMessage, ts: f.thread.root}, f.new()))
	s := f.working()
	s.Threads[0].Ref = noticed.Voice
	done := f.do(f.job(session.Begin, s))
	first := parseShown(noticed.Voice)
	if done.Voice != "1."+first.ts || done.Shown != "" || len(f.lines()) != 1 || f.mood().Status != "processing" {
		t.Errorf("%+v: %q, %+v", done, f.lines(), f.mood())
	}
	s = f.kept(s, done)
	f.pass(least)
	s = f.report(s)
	s = f.report(over(s, finished()))

	s.Turns, s.Turn = 2, &session.Turn{N: 2, Stage: session.Preparing, Requests: []session.Request{f.asked()}, Started: f.now()}
	j := f.job(session.Begin, s)
	f.Inject(slacktest.Fault{On: "chat.postMessage", Lost: true})
	done = f.do(j)
	lines := f.lines()
	if len(lines) != 2 || done.Shown != session.ViewOf(s).Digest() || parseShown(done.Voice).turn != 2 || parseShown(done.Voice).ts == first.ts {
		t.Errorf("%+v: %q", done, lines)
	}
	if strings.Contains(lines[0], "[Mark ready]") || !strings.Contains(lines[0], "[Open PR") {
		t.Errorf("the message of the first turn: %q", lines[0])
	}
	f.pass(time.Second)
	if twice := f.do(again(j)); twice != done || len(f.lines()) != 2 {
		t.Errorf("performed twice: %+v, then %+v; %q", done, twice, f.lines())
	}
	calls := f.Calls("chat.update")
	f.pass(least)
	at := s
	at = f.kept(at, done)
	if f.do(f.job(session.Begin, at)); len(f.lines()) != 2 || f.Calls("chat.update") != calls {
		t.Errorf("replayed: %q", f.lines())
	}
}

// TestBeginElsewhere: who asked, and where, and not what.
func TestBeginElsewhere(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.working()
	s.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7"}
	s.Turn.Requests = []session.Request{{
		Thread: session.Thread{Platform: "github", Key: "acme/widgets/7"}, By: session.Person{Login: "octo<!here>cat"}, Text: "the secret plan",
	}}
	s = f.began(s)
	const want = "(Asked on pull request #7 by"
	if lines := f.lines(); len(lines) != 1 || !strings.Contains(lines[0], want) || strings.Contains(lines[0], "secret") || strings.Contains(lines[0], "@here") {
		t.Errorf("%q", lines)
	}
	s = f.report(step(s, "edit: a.go"))
	if lines := f.lines(); !strings.Contains(lines[0], want) || !strings.Contains(lines[0], "a.go") {
		t.Errorf("%q", lines)
	}
	if f.mood().By != "" {
		t.Errorf("%+v", f.mood())
	}
	s.Turn.Requests[0].Thread, s.PR = session.Thread{Platform: "linear", Key: "k"}, nil
	f.report(step(s, "edit: b.go"))
	if lines := f.lines(); !strings.Contains(lines[0], "(Asked elsewhere by") {
		t.Errorf("%q", lines)
	}
}

// TestBeginReplayed: of a turn that others have followed nothing is shown.
func TestBeginReplayed(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	j := f.job(session.Begin, f.working())
	j.Effect.Turn = 0
	if done := f.do(j); done.Voice != "" || f.lines() != nil {
		t.Errorf("%+v: %q", done, f.lines())
	}
}

// TestQuestionsAreAnswered: when the turn that answers it begins, nothing can be
// chosen any more in a question that was answered in words.
func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.new()
	s = f.kept(s, f.do(f.seen(session.Instruct, ref{kind: refMessage, ts: f.thread.root}, s)))
	f.pass(2 * time.Second)
	ask := f.job(session.Ask, s)
	ask.Effect.Text, ask.Effect.Choices = "In which repository?", []session.Choice{{Value: "acme/widgets"}, {Value: "acme/gadgets"}}
	s.Asking = &session.Asking{Request: f.asked(), Question: session.Question{Text: ask.Effect.Text, Choices: ask.Effect.Choices}}
	ask.State = s
	f.do(ask)
	if lines := f.lines(); len(lines) != 2 || !strings.Contains(lines[0], "Waiting to hear which repository") || !strings.Contains(lines[1], "[acme/widgets]") {
		t.Fatalf("%q", lines)
	}
	answer, _ := f.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "widgets", Thread: f.thread.root})
	begun := f.working()
	begun.Threads = s.Threads
	begun.Turn.Requests[0].Ref, begun.Turn.Requests[0].Repo = ref{kind: refMessage, ts: answer, user: f.PersonID("ada")}.String(), "acme/widgets"
	f.do(f.job(session.Begin, begun))
	if lines := f.lines(); len(lines) != 2 || strings.Contains(lines[1], "[acme") || !strings.Contains(lines[1], "chosen by @ada") {
		t.Errorf("%q", lines)
	}
}
