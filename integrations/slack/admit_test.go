package slack

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

func TestAdmitMention(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Channels = map[string]string{"#eng": "acme/widgets"}
	r := d.asks("ada", "fix the flaky login test\nit fails one time in five")
	a := d.admit(r)
	ts := parseTestThread(t, r).root
	want := session.Admission{
		Talks: true, By: session.Person{Login: "ada-gh", Email: "ada-gh@users.noreply.github.example"},
		Repo: session.Repo{Platform: "github", Name: "acme/widgets", Key: "key of acme/widgets"}, Base: "main",
		Title:  "fix the flaky login test",
		Origin: &session.Origin{Name: "Slack thread", URL: "https://acme.slack.com/archives/" + d.ChannelID("eng") + "/p" + ts[:10] + ts[11:]},
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	if n := d.calls(); n != 4 { // who we are, who asks, the channel's name, the thread
		t.Errorf("%d calls", n)
	}
	if d.admit(r); d.calls() != 5 {
		t.Errorf("once more, %d calls", d.calls())
	}
}

func parseTestThread(t *testing.T, r session.Request) thread {
	t.Helper()
	at, err := parseThread(r.Thread.Key)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestReadAlong: what was said beside the conversation since the last request
// comes with the next, once, and what was said before is the context.
func TestReadAlong(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Default = "acme/widgets"
	begun, _ := d.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "the login test fails"})
	d.Post(slacktest.Said{Channel: "eng", By: "ada", Thread: begun, Text: "on <main> & elsewhere"})
	_, ds := d.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: begun, Text: "have a look"})
	d.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: begun, Text: "said after the request"})
	first := d.request(ds...)
	a := d.admit(first)
	if diff := cmp.Diff("Message by bob:\n> the login test fails\n\nMessage by ada:\n> on <main> & elsewhere\n\n", a.Context); diff != "" || a.Quote != "" || a.Title != "have a look" {
		t.Errorf("%q, %q: %s", a.Title, a.Quote, diff)
	}
	d.learn(first, a)
	d.Post(slacktest.Said{Channel: "eng", By: "ada", Thread: begun, Text: "no, the cache"})
	second := d.replies(first, "ada", "what do you think?")
	a = d.admit(second)
	want := "Said in the thread since the last request:\n\nMessage by bob:\n> said after the request\n\nMessage by ada:\n> no, the cache\n\n"
	if diff := cmp.Diff(want, a.Quote); diff != "" {
		t.Error(diff)
	}
	d.learn(second, a)
	third := d.replies(first, "ada", "well?")
	if a = d.admit(third); a.Quote != "" {
		t.Errorf("third: %q", a.Quote)
	}
}
