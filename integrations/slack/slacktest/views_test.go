package slacktest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
)

func label(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

func modal(c *client) slack.ModalViewRequest {
	task := slack.NewPlainTextInputBlockElement(nil, "task")
	task.MaxLength = 10
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: label("ship"), Submit: label("Run"), CallbackID: "new", PrivateMetadata: "p1", NotifyOnClose: true,
		Blocks: slack.Blocks{BlockSet: []slack.Block{
			slack.NewInputBlock("task_block", label("Task"), nil, task),
			slack.NewInputBlock("which_block", label("Which"), nil, c.menu(slack.OptTypeStatic, "Which?", "which")).WithOptional(true),
		}},
	}
}

// open opens a view for ada.
func (c *client) open(view slack.ModalViewRequest) error {
	c.t.Helper()
	ts, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "x"})
	trigger := acted(c.t, c.Shortcut(slacktest.Change{Channel: "eng", TS: ts, By: "ada"}, "x")).TriggerID
	_, err := c.OpenViewContext(c.t.Context(), trigger, view)
	return err
}

// top is what ada sees.
func (c *client) top() slacktest.View {
	c.t.Helper()
	all := c.Views("ada")
	if len(all) == 0 {
		c.t.Fatal("no view is open")
	}
	return all[len(all)-1]
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	c := quick(t)
	ts, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "x"})
	trigger := func() string {
		return acted(t, c.Shortcut(slacktest.Change{Channel: "eng", TS: ts, By: "ada"}, "x")).TriggerID
	}
	once, late := trigger(), trigger()
	if _, err := c.OpenViewContext(t.Context(), once, modal(c)); err != nil {
		t.Fatal(err)
	}
	c.Advance(3 * time.Second)
	for id, want := range map[string]string{once: "exchanged_trigger_id", late: "expired_trigger_id", "1.2.x": "invalid_trigger_id"} {
		_, err := c.OpenViewContext(t.Context(), id, modal(c))
		c.fails(err, want)
	}
}

func TestViewsAreChecked(t *testing.T) {
	t.Parallel()
	c := quick(t)
	for name, change := range map[string]func(*slack.ModalViewRequest){
		"type":     func(v *slack.ModalViewRequest) { v.Type = "window" },
		"title":    func(v *slack.ModalViewRequest) { v.Title = label(strings.Repeat("x", 25)) },
		"submit":   func(v *slack.ModalViewRequest) { v.Submit = nil },
		"close":    func(v *slack.ModalViewRequest) { v.Close = label(strings.Repeat("x", 25)) },
		"metadata": func(v *slack.ModalViewRequest) { v.PrivateMetadata = strings.Repeat("x", 3001) },
		"blocks":   func(v *slack.ModalViewRequest) { v.Blocks.BlockSet[0] = section("") },
	} {
		v := modal(c)
		change(&v)
		t.Log(name)
		c.fails(c.open(v), "invalid_arguments")
	}
	if len(c.Views("ada")) != 0 {
		t.Error("something opened")
	}
}

func TestSubmissions(t *testing.T) {
	t.Parallel()
	c := quick(t)
	var answer string
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
	defer app.Close()
	if err := c.open(modal(c)); err != nil {
		t.Fatal(err)
	}
	id := c.top().ID
	for name, answers := range map[string]map[string]string{
		"nothing": {}, "unknown": {"task": "x", "colour": "red"}, "too long": {"task": strings.Repeat("x", 11)}, "no option": {"task": "x", "which": "c"},
	} {
		if _, err := c.Submit(id, answers); err == nil {
			t.Errorf("%s: it cannot be sent", name)
		}
	}
	submit := func(says string) slack.InteractionCallback {
		answer = says
		d, err := c.Submit(id, map[string]string{"Task": "fix it", "which_block": "Option B"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Deliver(t.Context(), app.URL, d); err != nil {
			t.Fatal(err)
		}
		return acted(t, d)
	}
	got := submit(`{"response_action":"errors","errors":{"task_block":"too vague"}}`)
	values := got.View.State.Values
	if got.Type != slack.InteractionTypeViewSubmission || got.View.CallbackID != "new" || got.View.PrivateMetadata != "p1" ||
		values["task_block"]["task"].Value != "fix it" || values["which_block"]["which"].SelectedOption.Value != "b" {
		t.Errorf("submitted %+v", got.View)
	}
	if c.top().Errors["task_block"] != "too vague" {
		t.Errorf("shown %+v", c.top())
	}
	submit("")
	if len(c.Views("ada")) != 0 || len(c.Violations()) != 0 {
		t.Errorf("open: %+v, %q", c.Views("ada"), c.Violations())
	}
}

func TestViewUpdates(t *testing.T) {
	t.Parallel()
	c := quick(t)
	if err := c.open(modal(c)); err != nil {
		t.Fatal(err)
	}
	next := modal(c)
	next.Title = label("next")
	if _, err := c.UpdateViewContext(t.Context(), next, "", "", c.top().ID); err != nil || c.top().Title != "next" {
		t.Errorf("%v, %+v", err, c.top())
	}
	_, err := c.UpdateViewContext(t.Context(), next, "", "old", c.top().ID)
	c.fails(err, "hash_conflict")
	_, err = c.UpdateViewContext(t.Context(), next, "", "", "V0NONE")
	c.fails(err, "not_found")
	next.Blocks.BlockSet = append(next.Blocks.BlockSet, slack.NewActionBlock("", button("more", "More")))
	if _, err := c.UpdateViewContext(t.Context(), next, "", "", c.top().ID); err != nil {
		t.Fatal(err)
	}
	d, err := c.PressInView(c.top().ID, "More")
	if err != nil {
		t.Fatal(err)
	}
	if got := acted(t, d); got.Container.ViewID != c.top().ID || got.ActionCallback.BlockActions[0].Value != "v-more" || got.TriggerID == "" {
		t.Errorf("pressed %+v", got)
	}
	if _, err := c.PressInView(c.top().ID, "Less"); err == nil {
		t.Error("there is no such button")
	}
	if ds := c.CloseView(c.top().ID); len(ds) != 1 || acted(t, ds[0]).Type != slack.InteractionTypeViewClosed {
		t.Errorf("told %v", ds)
	}
}
