package slack

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// poison is what another app may have made of a message: blocks of tomorrow, and
// other fields of another shape than ours.
const poison = `{
	"blocks": [{"type": "actions", "elements": [{"type": "menu_of_tomorrow"}]}, "x", {"type": "section", "accessory": 7}],
	"attachments": [{"blocks": [{"type": "actions", "elements": [{"type": "?"}]}], "title": "Disk full", "text": "on db1"}, 5, {"text": 6, "files": 7}],
	"files": {"id": 3}, "metadata": "none", "reactions": 7, "edited": true, "reply_users": "U1", "latest_reply": 8, "hidden": "no", "bot_profile": []
}`

// poisoned has another app write into a thread, or the channel if root is empty.
func poisoned(s *slacktest.Server, root string) {
	s.AddPerson(slacktest.Person{Handle: "robot", Bot: true})
	s.Post(slacktest.Said{Channel: "eng", By: "robot", Thread: root, Text: "alert", Raw: poison})
}

// TestPoison: the library reads nothing of a thread with it.
func TestPoison(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	poisoned(f.Server, f.thread.root)
	_, _, _, err := f.performer.app.client.GetConversationRepliesContext(t.Context(), &api.GetConversationRepliesParameters{
		ChannelID: f.thread.channel, Timestamp: f.thread.root,
	})
	if err == nil {
		t.Error("it is none")
	}
}

// TestLookBesidePoison: what may have been posted is looked for, and found.
func TestLookBesidePoison(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(*floor, session.Job){
		"lost": func(f *floor, j session.Job) {
			f.Inject(slacktest.Fault{On: "chat.postMessage", Lost: true})
			f.do(j)
		},
		"not sent": func(f *floor, j session.Job) {
			f.Inject(slacktest.Fault{On: "chat.postMessage", Status: 502})
			if p := f.fails(j); !p.Again {
				t.Errorf("%+v", p)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := quiet(t)
			poisoned(f.Server, f.thread.root)
			j := f.saying("Hello")
			after(f, j)
			f.do(again(j))
			if got := f.lines(); !slices.Equal(got, []string{"Hello"}) {
				t.Errorf("it reads %q", got)
			}
		})
	}
}

func TestSweepBesidePoison(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	f.posted("a", "one")
	poisoned(f.Server, f.thread.root)
	f.posted("a", "one again")
	f.do(f.job(session.Sweep, f.working()))
	if got := f.lines(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("it reads %q", got)
	}
}

func TestRetireBesidePoison(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	since := f.posted("a", "the living message")
	poisoned(f.Server, f.thread.root)
	ts := f.question(nameRepo)
	s := f.working()
	s.Turn.Requests[0].Repo = "acme/web"
	if err := f.works(f.job(session.Begin, s)).retireQuestions(t.Context(), since); err != nil {
		t.Fatal(err)
	}
	if got := f.Message("eng", ts); !strings.Contains(got.Plain, "✓ `acme/web`, chosen by @ada") {
		t.Errorf("it reads %q", got.Plain)
	}
}

// TestRetireWhatIsNotUnderstood: a message of ours with what we never sent stays
// as it is, and the log says so.
func TestRetireWhatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	ts, _ := f.Post(slacktest.Said{Channel: "eng", By: "ship", Thread: f.thread.root, Text: "Which one?", Raw: poison})
	var log strings.Builder
	f.performer.app.log = slog.New(slog.NewTextHandler(&log, nil))
	s := f.working()
	s.Turn.Requests[0].Repo = "acme/web"
	w := f.works(f.job(session.Begin, s))
	for _, err := range []error{w.retire(t.Context(), ts, "✓"), w.withdraw(t.Context(), ts, nameRemember), w.retireQuestions(t.Context(), ts)} {
		if err != nil {
			t.Error(err)
		}
	}
	if f.Message("eng", ts).Updates != 0 || strings.Count(log.String(), "not understood") != 2 {
		t.Errorf("changed %d times\n%s", f.Message("eng", ts).Updates, log.String())
	}
}

// TestRecoverBesidePoison: what people say beside it is recovered, in the channel
// and below what was said there.
func TestRecoverBesidePoison(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	root := o.begun("eng")
	poisoned(o.Server, "")
	poisoned(o.Server, root)
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix that"})
	o.Mention(slacktest.Said{Channel: "eng", By: "bob", Thread: root, Text: "and the docs"})
	if got := texts(o.recovers(2, time.Hour)); !slices.Equal(got, []string{"instruct fix that", "instruct and the docs"}) {
		t.Errorf("took %q", got)
	}
}

// TestContextBesidePoison: it is read along, as far as it can be understood.
func TestContextBesidePoison(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Default = "acme/widgets"
	root, _ := d.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "first"})
	poisoned(d.Server, root)
	d.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: root, Text: "last"})
	_, ds := d.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: root, Text: "fix it"})
	want := "Message by bob:\n> first\n\nMessage by the bot of another app:\n> alert\n\n" +
		"Attached by the bot of another app:\n> Disk full\n> on db1\n\nMessage by bob:\n> last\n\n"
	if a := d.admit(d.request(ds...)); strings.ReplaceAll(a.Context, "Bob", "bob") != want {
		t.Errorf("%q", a.Context)
	}
}

// TestChangeOfPoison: what another app added to a message of ours, such as the
// preview of a link, does not keep it from being changed.
func TestChangeOfPoison(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	ts, _ := f.Post(slacktest.Said{Channel: "eng", By: "ship", Thread: f.thread.root, Text: "Working", Raw: poison})
	w := f.works(f.job(session.Report, f.working()))
	if err := w.update(t.Context(), Thinking, ts, told("Done")[0]); err != nil {
		t.Error(err)
	}
	if m := f.Message("eng", ts); m.Plain != "Done" || f.Calls("chat.update") != 1 {
		t.Errorf("it reads %q after %d calls", m.Plain, f.Calls("chat.update"))
	}
}
