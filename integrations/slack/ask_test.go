package slack

import (
	"slices"
	"strings"
	"testing"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// asking is the job of asking in which repository, n of them.
func (f *floor) asking(s session.State, n int) session.Job {
	j := f.job(session.Ask, s)
	q := session.Question{Text: "In which repository? Answer with one, such as `/ship acme/api`.", Choices: []session.Choice{{Value: "acme/api"}, {Value: "acme/web", Label: "the site"}}}
	if n > 2 {
		q.Choices = choices(n, 20)
	}
	r := f.asked()
	j.Effect.Text, j.Effect.Choices, j.Effect.Ref = q.Text, q.Choices, r.Ref
	j.State.Asking = &session.Asking{Request: r, Question: q}
	return j
}

// TestAsk: the question stands in one place, with its buttons, for whoever asked,
// and the message that waits says so.
func TestAsk(t *testing.T) {
	t.Parallel()
	for _, fault := range []slacktest.Fault{{}, {On: "chat.postMessage", Skip: 1, Lost: true}, {On: "chat.update", Lost: true}, {On: "chat.update", Status: 500}} {
		f := quiet(t)
		f.Inject(fault)
		j := f.asking(f.noticed(), 2)
		if fault.On == "chat.update" {
			if p := f.fails(j); !p.Again {
				t.Errorf("%+v", p)
			}
		} else {
			f.do(j)
		}
		f.do(again(j))
		all := f.everywhere()
		if len(all) != 2 {
			t.Fatalf("%+v: %+v", fault, all)
		}
		want := "@ada\nIn which repository? Answer with one, such as `acme/api`.\n[acme/api] [the site]"
		if all[1].Plain != want || !strings.HasPrefix(all[1].Text, "<@"+f.PersonID("ada")+"> In which") {
			t.Errorf("it reads %q, %q", all[1].Plain, all[1].Text)
		}
		if strings.Contains(all[0].Plain, "looking into this") || !slices.Equal(all[0].Controls, []string{"[Stop]"}) {
			t.Errorf("above it reads %q", all[0].Plain)
		}
		if ids := blockIDs(t, all[1]); !slices.Contains(ids, blockID(f.TeamID(), nameRepo)) {
			t.Errorf("blocks %q", ids)
		}
	}
}

// TestAskAnew: what is asked again is asked in a message of its own, and of many
// one is selected.
func TestAskAnew(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	f.do(f.asking(f.new(), 2))
	next := f.asking(f.new(), 12)
	next.Effect.ID = "another"
	f.do(next)
	f.do(again(next))
	all := f.everywhere()
	if len(all) != 2 || len(all[1].Controls) != 1 || !strings.HasPrefix(all[1].Controls[0], "[Choose one: choice-1-") {
		t.Errorf("%+v", all)
	}
}

// TestAskInPrivate: who is alone with us is not called.
func TestAskInPrivate(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	ts, _ := f.DM("ada", "fix it")
	f.thread = thread{f.TeamID(), f.ChannelID("@ada"), ts}
	f.do(f.asking(f.new(), 2))
	if got := f.lines(); len(got) != 1 || strings.Contains(got[0], "@ada") {
		t.Errorf("it reads %q", got)
	}
}
