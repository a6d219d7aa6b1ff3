package slack

import (
	"slices"
	"testing"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// posted posts a message under an id, whether it is there or not, as an owner
// does that was frozen.
func (f *floor) posted(id, text string) string {
	f.t.Helper()
	ts, err := f.works(f.saying("")).post(f.t.Context(), Settling, id, told(text)[0])
	if err != nil {
		f.t.Fatal(err)
	}
	return ts
}

// TestSweep: of what was posted twice the first stays, and what others say.
func TestSweep(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]slacktest.Fault{
		"well": {}, "lost": {On: "chat.delete", Lost: true}, "half": {On: "chat.delete", Skip: 1, Status: 502},
		"not read": {On: "conversations.replies", Status: 502}, "too often": slacktest.Limited("chat.delete", 5*time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := slacktest.NoLimits()
			l.Page = 2
			f := newFloor(t, slacktest.Options{Limits: l})
			f.posted("a", "one")
			f.posted("b", "two")
			f.posted("a", "one again")
			f.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: f.thread.root, Text: "I see it twice"})
			f.anew()
			f.posted("a/2", "three")
			f.posted("b", "two again")
			f.posted("a", "one once more")
			j := f.job(session.Sweep, f.working())
			f.Inject(fault)
			if fault.On != "" {
				if p := f.fails(j); !p.Again {
					t.Errorf("%+v", p)
				}
				f.anew()
			}
			f.do(again(j))
			f.do(again(j))
			if got := f.lines(); !slices.Equal(got, []string{"one", "two", "three"}) || len(f.Thread("eng", f.thread.root)) != 5 {
				t.Errorf("it reads %q", got)
			}
		})
	}
}

// TestSweepKeepsWhatChanges: the message that the session changes stays, and not
// one that it knows nothing of.
func TestSweepKeepsWhatChanges(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	f.posted("a", "the frozen one's")
	known := f.posted("a", "ours")
	f.posted("a", "the frozen one's again")
	s := f.working()
	s.Threads[0].Ref = shown{1, known}.String()
	f.do(f.job(session.Sweep, s))
	if got := f.lines(); !slices.Equal(got, []string{"ours"}) {
		t.Errorf("it reads %q", got)
	}
}

// TestSweepOfWhatIsGone: somebody was faster, or there is nobody to see it.
func TestSweepOfWhatIsGone(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	f.posted("a", "one")
	f.posted("a", "one again")
	f.Inject(slacktest.Failing("chat.delete", "message_not_found"))
	f.do(f.job(session.Sweep, f.working()))
	f.Archive("eng")
	if p := f.fails(f.job(session.Sweep, f.working())); !p.Gone {
		t.Errorf("%+v", p)
	}
}
