package slack

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session"
	"ship/session/memory"
)

// began is a state whose turn is shown in a living message.
func (f *floor) began(s session.State) session.State {
	f.t.Helper()
	done := f.do(f.job(session.Begin, s))
	s = f.kept(s, done)
	f.pass(least)
	return s
}

// report reports on a state, as time goes by, and returns it as it is kept.
func (f *floor) report(s session.State) session.State {
	f.t.Helper()
	done := f.do(f.job(session.Report, s))
	if want := session.ViewOf(s).Digest(); done.Shown != want {
		f.t.Errorf("shown %q, want %q", done.Shown, want)
	}
	s = f.kept(s, done)
	f.pass(least)
	return s
}

// step is a state with one more step of the agent's.
func step(s session.State, text string) session.State {
	turn := *s.Turn
	turn.Progress.Steps = []string{text}
	s.Turn = &turn
	return s
}

// TestReport: the message changes with the turn, and the end is in it too.
func TestReport(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.began(f.working())
	for _, tt := range []struct {
		state session.State
		want  string
	}{
		{step(s, "edit: login_test.go"), "Editing `login_test.go`"},
		{step(s, "bash: go test"), "Running `go test`"},
		{over(s, finished()), "[Mark ready]"},
	} {
		tt.state.Threads = s.Threads
		s = f.report(tt.state)
		if lines := f.lines(); len(lines) != 1 || !strings.Contains(lines[0], tt.want) {
			t.Errorf("%q, want %q in it", lines, tt.want)
		}
	}
	if f.mood().Status != "active" {
		t.Errorf("%+v", f.mood())
	}
}

// TestReportTwice: performed again it shows the same, whether it was not heard
// of or another process does.
func TestReportTwice(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.began(f.working())
	s = step(s, "edit: login_test.go")
	f.Inject(slacktest.Fault{On: "chat.update", Lost: true})
	j, at := f.job(session.Report, s), f.now()
	j.Now = func() time.Time { return at }
	if p := f.fails(j); !p.Again {
		t.Errorf("%+v", p)
	}
	f.pass(least)
	first := f.do(again(j))
	shownFirst := f.lines()
	f.performer = f.gateway(&http.Transport{DisableKeepAlives: true})
	f.pass(least)
	if second := f.do(again(j)); second != first || strings.Join(f.lines(), "") != strings.Join(shownFirst, "") || len(shownFirst) != 1 {
		t.Errorf("%+v, then %+v\n%q\n%q", first, second, shownFirst, f.lines())
	}
}

// TestReportSaysNothingTwice: what looks the same is not sent, but after a sweep,
// by another process, or when the lease came back.
func TestReportSaysNothingTwice(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.report(f.began(f.working()))
	at := f.now()
	report := func(s session.State, epoch int64) {
		t.Helper()
		j := f.job(session.Report, s)
		j.Lease.Epoch, j.Now = epoch, func() time.Time { return at }
		f.do(j)
		f.pass(least)
	}
	report(s, 1)
	swept := s
	swept.Threads = []session.Voice{s.Threads[0]}
	swept.Threads[0].Shown = ""
	for i, again := range []func(){
		func() { report(s, 1) }, func() { report(swept, 1) }, func() { report(s, 2) }, func() { report(s, 2) },
	} {
		before := f.Calls("chat.update")
		again()
		if sent := f.Calls("chat.update") > before; sent != (i == 1 || i == 2) {
			t.Errorf("%d: sent %v", i, sent)
		}
	}
}

// TestReportWithoutRoom: what cannot be shown is owned up to, unless it is an end
// that somebody has waited behind for long.
func TestReportWithoutRoom(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.began(f.working())
	limited := func(s session.State) session.Performed {
		t.Helper()
		f.quota = &memory.Quota{} // which does not know of a refusal
		f.performer = f.gateway(&http.Transport{DisableKeepAlives: true})
		f.Inject(slacktest.Limited("chat.update", time.Minute))
		before := f.Calls("chat.update")
		done := f.do(f.job(session.Report, s))
		if f.Calls("chat.update") != before+1 {
			t.Errorf("%d requests", f.Calls("chat.update")-before)
		}
		return done
	}
	end := over(s, finished())
	waits, endless := end, end
	waits.Waiting = []session.Admitted{{Request: f.asked()}}
	endless.Waiting, endless.Turn = waits.Waiting, &session.Turn{N: 1, Stage: session.Ended, Finished: f.now().Add(-time.Minute)}
	for i, tt := range []struct {
		state session.State
		want  string
	}{
		{step(s, "edit: login_test.go"), ""}, {end, ""}, {waits, ""}, {endless, session.ViewOf(endless).Digest()},
	} {
		if done := limited(tt.state); done.Shown != tt.want || done.Ref != s.Threads[0].Ref {
			t.Errorf("%d: %+v, want %q", i, done, tt.want)
		}
	}
	f.quota = &memory.Quota{}
	f.performer = f.gateway(&http.Transport{DisableKeepAlives: true})
	if f.report(end); !strings.Contains(f.lines()[0], "[Mark ready]") {
		t.Errorf("%q", f.lines())
	}
}

// TestReportTooEarly: right after the message was posted it is left as it is,
// and what there is to say follows.
func TestReportTooEarly(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.working()
	s = f.kept(s, f.do(f.job(session.Begin, s)))
	for _, next := range []session.State{step(s, "edit: login_test.go"), over(s, finished())} {
		if done := f.do(f.job(session.Report, next)); done.Shown != "" || f.Calls("chat.update") != 0 {
			t.Errorf("%+v after %d changes", done, f.Calls("chat.update"))
		}
	}
	if done := f.do(f.job(session.Report, s)); done.Shown != session.ViewOf(s).Digest() {
		t.Errorf("what is shown already: %+v", done)
	}
}

// TestReportDeleted: what somebody deleted is posted once more, while the turn
// runs.
func TestReportDeleted(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.began(f.working())
	remove := func() {
		f.Delete(slacktest.Change{Channel: f.thread.channel, TS: parseShown(s.Threads[0].Ref).ts, By: "ship"})
	}
	remove()
	s = f.report(step(s, "edit: a.go"))
	if lines := f.lines(); len(lines) != 1 || !strings.Contains(lines[0], "a.go") {
		t.Errorf("%q", lines)
	}
	s = f.report(step(s, "edit: b.go"))
	if lines := f.lines(); len(lines) != 1 || !strings.Contains(lines[0], "b.go") {
		t.Errorf("%q", lines)
	}
	remove()
	s = f.report(step(s, "edit: c.go"))
	calls := f.Calls("chat.update")
	s = f.report(step(s, "edit: d.go"))
	f.report(over(s, finished()))
	if lines := f.lines(); lines != nil || f.Calls("chat.update") != calls {
		t.Errorf("%q after %d more tries", lines, f.Calls("chat.update")-calls)
	}
}

// TestReportDeletedAtTheEnd: the answer tells.
func TestReportDeletedAtTheEnd(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.began(f.working())
	f.Delete(slacktest.Change{Channel: f.thread.channel, TS: parseShown(s.Threads[0].Ref).ts, By: "ship"})
	f.report(over(s, finished()))
	if lines := f.lines(); lines != nil {
		t.Errorf("%q", lines)
	}
}

// TestReportUnchangeable: a workspace that lets nobody change a message is not
// asked again and again.
func TestReportUnchangeable(t *testing.T) {
	t.Parallel()
	for _, answer := range unchangeable {
		f := newFloor(t, slacktest.Options{})
		s := f.began(f.working())
		f.Inject(refusing("chat.update", answer))
		for i := range 3 {
			s = f.report(step(s, strings.Repeat("x", i+1)))
		}
		if n := f.Calls("chat.update"); n != 1 || len(f.lines()) != 1 {
			t.Errorf("%s: %d tries, %q", answer, n, f.lines())
		}
	}
}

// TestReportRefLost: the message of the turn is found, and posted if it never
// was.
func TestReportRefLost(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{true, false} {
		f := newFloor(t, slacktest.Options{})
		s := f.working()
		if begun {
			f.do(f.job(session.Begin, s))
		}
		f.pass(least)
		for _, text := range []string{"edit: a.go", "edit: b.go"} {
			s = f.report(step(s, text))
		}
		if lines := f.lines(); len(lines) != 1 || !strings.Contains(lines[0], "b.go") {
			t.Errorf("begun %v: %q", begun, lines)
		}
	}
}

// TestReportSettled: a message that says that nothing was begun stays as it is.
func TestReportSettled(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.working()
	s.Threads[0].Ref = "x." + f.thread.root
	if s = f.report(s); f.Calls("chat.update") != 0 || s.Threads[0].Ref != "x."+f.thread.root {
		t.Errorf("%+v", s.Threads[0])
	}
}

// TestReportGone: where we may not write any more, the session hears of it.
func TestReportGone(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	s := f.began(f.working())
	f.Remove("eng")
	if p := f.fails(f.job(session.Report, step(s, "edit: a.go"))); !p.Gone {
		t.Errorf("%+v", p)
	}
}

// TestPace: the longer it takes, the less is told, and never more than Slack
// takes for one message.
func TestPace(t *testing.T) {
	t.Parallel()
	var last session.Pace
	for at := time.Duration(0); at < 3*time.Hour; at += 30 * time.Second {
		p := Pace(at)
		if p.Every < p.Least || p.Least < 3*time.Second || p.Silence < p.Every || p.Every < last.Every || p.Silence < last.Silence || p.Silence > 10*time.Minute {
			t.Errorf("after %s: %+v", at, p)
		}
		last = p
	}
}

// TestWhateverIsWrong with Slack, beginning and reporting are tried again in
// time, and then all is as if nothing had been.
func TestWhateverIsWrong(t *testing.T) {
	t.Parallel()
	always := func(f slacktest.Fault) slacktest.Fault { f.Times = -1; return f }
	for _, kind := range []session.EffectKind{session.Begin, session.Report} {
		for name, fault := range map[string]slacktest.Fault{
			"hangs": {}, "limited": always(slacktest.Limited("", 30*time.Second)), "broken": {Status: http.StatusBadGateway, Times: -1}, "lost": {Lost: true, Times: -1},
		} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				f := newFloor(t, slacktest.Options{})
				synctest.Test(t, func(t *testing.T) {
					w := f.inBubble(t)
					s := f.working()
					if kind == session.Report {
						s = f.kept(s, f.do(f.job(session.Begin, s)))
						time.Sleep(least)
						s = step(s, "edit: a.go")
					}
					if w.hangs = name == "hangs"; !w.hangs {
						f.Inject(fault)
					}
					j, begun := f.job(kind, s), time.Now()
					done, err := f.performer.Perform(t.Context(), j)
					p, ok := errors.AsType[*session.Problem](err)
					if err != nil && (!ok || !p.Again) || err == nil && done.Shown == session.ViewOf(s).Digest() {
						t.Errorf("%+v, %v", done, err)
					}
					if took := time.Since(begun); took > 2*callTimeout+statusTimeout {
						t.Errorf("it took %s", took)
					}
					w.hangs = false
					f.ClearFaults()
					time.Sleep(time.Minute)
					if done = f.do(again(j)); done.Shown != session.ViewOf(s).Digest() || len(f.lines()) != 1 {
						t.Errorf("%+v: %q", done, f.lines())
					}
				})
			})
		}
	}
}
