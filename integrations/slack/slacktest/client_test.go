package slacktest_test

import (
	"errors"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/goleak"

	"ship/integrations/slack/slacktest"
	"ship/integrations/slack/slacktest/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// client is slack-go, speaking with a stand-in that has the channel #eng.
type client struct {
	*slacktest.Server
	*slack.Client
	t   *testing.T
	eng string
}

func newClient(t *testing.T, o slacktest.Options) *client {
	t.Helper()
	if o.Validator == nil {
		if v := validator(t); v != nil {
			o.Validator = v
		}
	}
	s, err := slacktest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	eng := s.CreateChannel(slacktest.Channel{Name: "eng", Members: []string{"ada", "bob"}})
	return &client{Server: s, Client: connect(s), t: t, eng: eng}
}

// connect is the client of an app that has both tokens.
func connect(s *slacktest.Server) *slack.Client {
	return slack.New(s.BotToken(), slack.OptionAPIURL(s.APIURL()), slack.OptionAppLevelToken(s.AppToken()))
}

// quick has no limits on how fast one may be.
func quick(t *testing.T) *client {
	t.Helper()
	return newClient(t, slacktest.Options{Limits: slacktest.NoLimits()})
}

// loaded is Slack's own schema, read once for all tests.
var loaded = sync.OnceValues(func() (*schema.Validator, error) {
	return schema.Load("../../../../shared/data/slack-blockkit.schema.json")
})

// validator is that of Slack's own schema, or nil if that is not there.
func validator(t *testing.T) *schema.Validator {
	t.Helper()
	v, err := loaded()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// post posts a message as the app and returns its timestamp.
func (c *client) post(options ...slack.MsgOption) string {
	c.t.Helper()
	_, ts, err := c.PostMessageContext(c.t.Context(), c.eng, options...)
	if err != nil {
		c.t.Fatal(err)
	}
	return ts
}

// update changes a message of the app.
func (c *client) update(ts string, options ...slack.MsgOption) error {
	_, _, _, err := c.UpdateMessageContext(c.t.Context(), c.eng, ts, options...)
	return err
}

func text(s string) slack.MsgOption { return slack.MsgOptionText(s, false) }

// fails checks the code of an error.
func (c *client) fails(err error, code string) {
	c.t.Helper()
	var said slack.SlackErrorResponse
	if !errors.As(err, &said) || said.Err != code {
		c.t.Errorf("got %v, want %s", err, code)
	}
}

// limited checks that one must wait, and how long.
func (c *client) limited(err error, after time.Duration) {
	c.t.Helper()
	var said *slack.RateLimitedError
	if !errors.As(err, &said) || said.RetryAfter != after {
		c.t.Errorf("got %v, want to wait %s", err, after)
	}
}

func section(s string) slack.Block {
	return slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, s, false, false), nil, nil)
}

func button(id, label string) *slack.ButtonBlockElement {
	return slack.NewButtonBlockElement(id, "v-"+id, slack.NewTextBlockObject(slack.PlainTextType, label, true, false))
}
