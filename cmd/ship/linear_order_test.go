package main

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/session"
)

// TestLinearPromptAtTheEnd: prompts that come in the very moment in which a turn
// ends are carried out, by it or by another.
func TestLinearPromptAtTheEnd(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{rigOptions: rigOptions{more: "sandbox: {max: 8}\n"}})
	r.start()
	const sessions = 6
	var ids []string
	for i := range sessions {
		issue := r.linear.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Gadget " + strconv.Itoa(i)})
		id, d := r.linear.Delegate(issue, "ada")
		ids = append(ids, id)
		r.tell(d)
	}
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			for !r.publishing(id) {
				time.Sleep(20 * time.Millisecond)
			}
			time.Sleep(time.Duration(i) * 60 * time.Millisecond)
			r.tell(r.linear.Prompt(id, "ada", "and oil them"))
		})
	}
	wg.Wait()
	for _, id := range ids {
		r.settled(id, 2, patience)
	}
	for _, pr := range r.host.PullRequests(rigRepo) {
		if text, _ := r.host.File(rigRepo, pr.Head, "WORK.md"); !strings.HasSuffix(text, "\nand oil them") {
			t.Errorf("%s holds %q", pr.Head, text)
		}
	}
	r.stop()
}

// publishing: the agent is done in a session.
func (r *linearRig) publishing(id string) bool {
	for _, s := range r.states() {
		if s.ID == session.ID("ln."+id) && s.Turn != nil && s.Turn.Stage != session.Preparing && s.Turn.Stage != session.Running {
			return true
		}
	}
	return false
}

// TestLinearShuffled: a session begins, somebody adds to it and says stop, and
// the webhooks come in any order, twice. Stop was last, so nothing runs on.
func TestLinearShuffled(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	for _, order := range [][3]int{{2, 0, 1}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}} {
		issue := r.linear.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Gadget"})
		id, created := r.linear.Mention(lineartest.Mention{Issue: issue, By: "ada", Body: "@ship SLOWLY turn them"})
		time.Sleep(5 * time.Millisecond)
		all := [3]lineartest.Delivery{created, r.linear.Prompt(id, "ada", "and oil them")}
		time.Sleep(5 * time.Millisecond)
		all[2] = r.linear.Stop(id, "ada")
		for _, i := range order {
			r.tell(all[i])
			r.tell(all[i].Again())
		}
		r.await("the session to come to rest", patience, func() bool { return r.finished(id) })
		if last := r.last(id).Content; last.Type != ql.TypeResponse {
			t.Errorf("%v: the last word is %+v", order, last)
		}
	}
	if n := len(r.host.PullRequests(rigRepo)); n > 1 {
		t.Errorf("%d pull requests", n)
	}
	r.stop()
}

// frozenPair is two workers, the first of which is frozen when it sends the
// activity that match tells of, which reaches Linear only when it is let go.
func (r *linearRig) frozenPair(match func(session.State) bool) (b *linearRig, arrive func()) {
	r.t.Helper()
	var first atomic.Bool
	sent, held, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.linear.Inject(lineartest.Fault{On: "CreateActivity", Times: -1, Do: func(*http.Request) {
		if all := r.states(); len(all) == 1 && match(all[0]) && first.CompareAndSwap(false, true) {
			defer close(done)
			close(sent)
			<-held
		}
	}})
	b = &linearRig{rig: r.twin(), linear: r.linear, issue: r.issue}
	r.start()
	_, d := r.linear.Mention(lineartest.Mention{Issue: r.issue, By: "ada", Body: "@ship PLAN TAKING 14s"})
	r.tell(d)
	select {
	case <-sent:
	case <-time.After(time.Minute):
		r.t.Fatalf("nothing was sent; ship said:\n%s", r.log)
	}
	r.freeze()
	b.start()
	return b, func() { close(held); <-done }
}

// TestLinearFrozen: an owner stands still with something on its way to Linear,
// and wakes when another has said the end: that is the last word, and there
// once. What arrives late has the id under which the other has said it.
func TestLinearFrozen(t *testing.T) {
	if testing.Short() {
		t.Skip("the sweep comes after a minute and a half")
	}
	t.Parallel()
	for name, match := range map[string]func(session.State) bool{
		"in the answer": func(s session.State) bool { return s.Turn != nil && s.Turn.Stage == session.Ended },
		"in a report": func(s session.State) bool {
			return s.Turn != nil && s.Turn.Stage == session.Running && s.Turn.Progress.Doing != ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newLinearRig(t, linearOptions{})
			b, arrive := a.frozenPair(match)
			id := a.linear.Sessions("")[0].ID
			b.settled(id, 1, patience)
			arrive()
			a.thaw()
			a.await("the first to notice", patience, func() bool { return strings.Contains(a.log.String(), "lease lost") })
			b.await("the sweep", patience, func() bool { return b.told() && b.quiet() })
			b.settled(id, 1, patience)
			b.calm()
			b.stop()
			a.stop()
		})
	}
}
