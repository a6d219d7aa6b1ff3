package slacktest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
)

// x is text of some length.
func x(n int) string { return strings.Repeat("x", n) }

func plainText(n int) string { return fmt.Sprintf(`{"type":"plain_text","text":%q}`, x(n)) }

func many(n int, format string) string {
	var all []string
	for i := range n {
		all = append(all, strings.ReplaceAll(format, "%d", fmt.Sprint(i)))
	}
	return strings.Join(all, ",")
}

func TestBlockLimits(t *testing.T) {
	t.Parallel()
	c := newClient(t, slacktest.Options{Limits: slacktest.NoLimits(), Validator: anything{}})
	const option = `{"text":{"type":"plain_text","text":"a"},"value":"v%d"}`
	actions := func(elements string) string { return `{"type":"actions","elements":[` + elements + `]}` }
	button := func(rest string) string { return actions(`{"type":"button","text":` + plainText(5) + rest + `}`) }
	for blocks, want := range map[string]string{
		many(50, `{"type":"divider"}`):                                                              "",
		many(51, `{"type":"divider"}`):                                                              "no more than 50 items",
		`{"type":"section","text":` + plainText(3000) + `}`:                                         "",
		`{"type":"section","text":` + plainText(3001) + `}`:                                         "less than 3001 characters",
		`{"type":"section"}`:                                                                        "missing required field",
		`{"type":"section","text":{"type":"mrkdwn","text":""}}`:                                     "more than 0 characters",
		`{"type":"section","fields":[` + many(11, plainText(1)) + `]}`:                              "no more than 10 items",
		`{"type":"section","fields":[` + plainText(2001) + `]}`:                                     "less than 2001",
		`{"type":"header","text":` + plainText(151) + `}`:                                           "less than 151",
		`{"type":"header","text":{"type":"mrkdwn","text":"x"}}`:                                     "failed to match",
		`{"type":"context","elements":[` + many(11, plainText(1)) + `]}`:                            "no more than 10 items",
		`{"type":"context","elements":[]}`:                                                          "at least 1 item",
		actions(many(25, `{"type":"button","text":{"type":"plain_text","text":"a"}}`)):              "",
		actions(many(26, `{"type":"button","text":{"type":"plain_text","text":"a"}}`)):              "no more than 25 items",
		actions(`{"type":"video"}`):                                                                 "unsupported type: video",
		button(`,"value":"` + x(2001) + `"`):                                                        "less than 2001",
		button(`,"style":"loud"`):                                                                   "failed to match a style",
		button(`,"confirm":{"title":` + plainText(1) + `,"text":` + plainText(1) + `}`):             "confirm/confirm",
		button(`,"action_id":"a"},{"type":"button","text":` + plainText(1) + `,"action_id":"a"`):    "already exists",
		actions(`{"type":"button","text":` + plainText(76) + `}`):                                   "less than 76",
		actions(`{"type":"static_select","options":[` + many(100, option) + `]}`):                   "",
		actions(`{"type":"static_select","options":[` + many(101, option) + `]}`):                   "no more than 100 items",
		actions(`{"type":"overflow","options":[` + many(6, option) + `]}`):                          "no more than 5 items",
		actions(`{"type":"radio_buttons","options":[` + many(11, option) + `]}`):                    "no more than 10 items",
		`{"type":"divider","block_id":"a"},{"type":"divider","block_id":"a"}`:                       "already exists",
		`{"type":"divider","block_id":"` + x(256) + `"}`:                                            "less than 256",
		`{"type":"plan","title":"p","tasks":[` + many(50, `{"task_id":"t%d"}`) + `]}`:               "",
		`{"type":"plan","title":"p","tasks":[` + many(2, `{"task_id":"t"}`) + `]}`:                  "must be unique",
		`{"type":"markdown","text":"` + x(6001) + `"},{"type":"markdown","text":"` + x(6001) + `"}`: "less than 12001 characters together",
		`{"type":"image","image_url":"https://x.example/i.png"}`:                                    "alt_text",
		`{"type":"nothing"}`: "unsupported type: nothing",
	} {
		err := c.send("chat.postMessage", url.Values{"channel": {c.eng}, "text": {"x"}, "blocks": {"[" + blocks + "]"}})
		if want == "" {
			if err != nil {
				t.Errorf("%.80s: %v", blocks, err)
			}
			continue
		}
		var said slack.SlackErrorResponse
		if !errors.As(err, &said) || said.Err != "invalid_blocks" || !strings.Contains(strings.Join(said.ResponseMetadata.Messages, "\n"), want) {
			t.Errorf("%.80s: got %v %v, want %q", blocks, err, said.ResponseMetadata.Messages, want)
		}
	}
}

func TestBlocksAsAWhole(t *testing.T) {
	t.Parallel()
	c := newClient(t, slacktest.Options{Limits: slacktest.NoLimits(), Validator: picky{}})
	five := many(5, `{"type":"section","text":`+plainText(2700)+`}`)
	for blocks, want := range map[string]string{
		"{}": "invalid_blocks_format", "[": "invalid_blocks_format", "[7]": "invalid_blocks_format",
		"[" + five + "]": "msg_blocks_too_long", `[{"type":"divider"}]`: "invalid_blocks",
	} {
		c.fails(c.send("chat.postMessage", url.Values{"channel": {c.eng}, "blocks": {blocks}}), want)
	}
	if got := c.Violations(); len(got) != 1 || !strings.Contains(got[0], "I do not like dividers") {
		t.Errorf("violations %q", got)
	}
}

// anything is a Validator that takes everything.
type anything struct{}

func (anything) Blocks(json.RawMessage) error { return nil }

// picky is a Validator that takes nothing.
type picky struct{}

func (picky) Blocks(json.RawMessage) error { return errors.New("I do not like dividers") }
