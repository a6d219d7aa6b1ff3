package slack

import (
	"strings"
	"testing"

	api "github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// question posts one, with the way to a pull request beside it.
func (f *floor) question(name string) string {
	f.t.Helper()
	m := posed(blockID(f.thread.team, name), "Which **one** & why, <you>? See https://a.example/?b&c", []session.Choice{{Value: "acme/api"}, {Value: "acme/web"}})[0]
	m.blocks = append(m.blocks, api.NewActionBlock(blockID(f.thread.team, nameOpen), opening(&session.PullRequest{URL: "https://github.com/acme/api/pull/7"})))
	ts, err := f.works(f.saying("")).post(f.t.Context(), Asking, "question "+name, m)
	if err != nil {
		f.t.Fatal(err)
	}
	return ts
}

// TestRetire: what can be pressed goes, the rest stays, and it says what was
// chosen, once.
func TestRetire(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	ts := f.question(nameRepo)
	w := f.works(f.saying(""))
	before := f.Message("eng", ts)
	if len(before.Controls) != 3 {
		t.Fatalf("%+v", before)
	}
	chosen := "✓ `acme/api`, chosen by <@" + f.PersonID("ada") + ">"
	f.Inject(slacktest.Fault{On: "chat.update", Lost: true})
	if err := w.retire(t.Context(), ts, chosen); err == nil {
		t.Error("the answer was lost, and nobody noticed")
	}
	for range 2 {
		if err := w.retire(t.Context(), ts, chosen); err != nil {
			t.Fatal(err)
		}
	}
	got := f.Message("eng", ts)
	said, _, _ := strings.Cut(before.Plain, "\n[")
	if want := said + "\n[Open PR -> https://github.com/acme/api/pull/7]\n(✓ `acme/api`, chosen by @ada)"; got.Plain != want {
		t.Errorf("it reads\n%s\nand not\n%s", got.Plain, want)
	}
	if got.Updates != 1 || string(got.Metadata) != string(before.Metadata) {
		t.Errorf("%+v", got)
	}
}

// TestRetireLongText: Slack makes a text longer than it takes, by what it marks
// in it.
func TestRetireLongText(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	w := f.works(f.saying(""))
	m := posed(blockID(team, nameRepo), "Is it?", []session.Choice{{Value: "yes"}})[0]
	m.text = strings.Repeat("https://a.example ", 222)
	ts, err := w.post(t.Context(), Asking, "a", m)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Message("eng", ts); len(got.Controls) != 1 {
		t.Fatalf("there is %q to press", got.Controls)
	}
	if err := w.retire(t.Context(), ts, ""); err != nil {
		t.Fatal(err)
	}
	if got := f.Message("eng", ts); len(got.Controls) > 0 || length(got.Text) > maxCaption {
		t.Errorf("%d characters, and %q to press", length(got.Text), got.Controls)
	}
}

// TestRetireWhatIsNotThere: that is somebody else's, or deleted, or as it was
// already.
func TestRetireWhatIsNotThere(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	w := f.works(f.saying(""))
	plain := f.posted("a", "no buttons")
	gone, closed := f.question(nameRepo), f.question("choose-1")
	f.Delete(slacktest.Change{Channel: "eng", TS: gone, By: "ship"})
	for _, ts := range []string{plain, gone, f.thread.root, "1.000001"} {
		if err := w.retire(t.Context(), ts, "✓"); err != nil {
			t.Errorf("%s: %v", ts, err)
		}
	}
	for _, answer := range []string{"message_not_found", "cant_update_message", "edit_window_closed"} {
		f.Inject(slacktest.Failing("chat.update", answer))
		if err := w.retire(t.Context(), closed, "✓"); err != nil {
			t.Errorf("%s: %v", answer, err)
		}
	}
	if n := f.Calls("chat.update"); n != 3 {
		t.Errorf("changed %d times", n)
	}
	f.Inject(slacktest.Failing("chat.update", "is_archived"))
	if p := classify(w.retire(t.Context(), closed, "✓")); !p.Gone {
		t.Errorf("%+v", p)
	}
}

// TestChosen: the press itself tells where, and the request what.
func TestChosen(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	const press = "button/1.2/repo/U1"
	of := func(ref, repo, text string) session.State {
		s := f.working()
		s.Turn.Requests[0].Ref, s.Turn.Requests[0].Repo, s.Turn.Requests[0].Text = ref, repo, text
		return s
	}
	waiting := f.new()
	waiting.Waiting = []session.Admitted{{Request: of("button/1.2/choose-1/U1", "", "this `way`").Turn.Requests[0]}}
	elsewhere := of(press, "acme/api", "fix it")
	elsewhere.Turn.Requests[0].Thread.Key = "T1/C1/1.2"
	for _, tt := range []struct {
		ref   string
		state session.State
		want  string
	}{
		{press, of(press, "acme/api", "fix it"), "✓ `acme/api`, chosen by <@U1>"},
		{"button/1.2/repo", of("button/1.2/repo", "acme/api", "fix it"), "✓ `acme/api`"},
		{"button/1.2/choose-1/U1", waiting, "✓ `this " + tick + "way" + tick + "`, chosen by <@U1>"},
		{press, of(press, "", "fix it"), ""},
		{press, of("button/3.4/repo/U1", "acme/api", "fix it"), ""},
		{press, elsewhere, ""},
		{press, f.new(), ""},
		{"nonsense", of("nonsense", "acme/api", "fix it"), ""},
	} {
		if got := f.works(f.job(session.Acknowledge, tt.state)).chosen(tt.ref); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.ref, got, tt.want)
		}
	}
}

// TestRetireQuestions: what was answered in words can no longer be pressed.
func TestRetireQuestions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*session.Turn)
		want   string
	}{
		"in words":         {func(u *session.Turn) { u.Asked = &session.Question{} }, "(✓ Answered by @ada)"},
		"a repository":     {func(u *session.Turn) { u.Requests[0].Repo = "acme/web" }, "(✓ `acme/web`, chosen by @ada)\n[Remember for this channel]"},
		"no question":      {func(*session.Turn) {}, ""},
		"by a button":      {func(u *session.Turn) { u.Requests[0].Repo, u.Requests[0].Ref = "acme/web", "button/1.2/repo/U1" }, ""},
		"asked elsewhere":  {func(u *session.Turn) { u.Asked, u.Requests[0].Thread.Key = &session.Question{}, "T1/C1/1.2" }, ""},
		"without a person": {func(u *session.Turn) { u.Requests[0].Repo, u.Requests[0].Ref = "acme/web", "message/1.2" }, "(✓ `acme/web`, chosen)\n[Remember for this channel]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := quiet(t)
			before := f.question(nameRepo)
			asked := "choose-1"
			if strings.Contains(tt.want, "acme/web") {
				asked = nameRepo
			}
			since := f.posted("a", "the living message")
			ts := f.question(asked)
			s := f.working()
			tt.change(s.Turn)
			j := f.job(session.Begin, s)
			for range 2 {
				if err := f.works(j).retireQuestions(t.Context(), since); err != nil {
					t.Fatal(err)
				}
			}
			got := f.Message("eng", ts)
			if tt.want == "" {
				if got.Updates != 0 || f.Calls("conversations.replies") != 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			if !strings.HasSuffix(got.Plain, "\n"+tt.want) || strings.Contains(got.Plain, "[acme/api]") || got.Updates != 1 {
				t.Errorf("it reads %q", got.Plain)
			}
			if f.Message("eng", before).Updates != 0 {
				t.Error("an older question was touched")
			}
		})
	}
}
