package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"ship/config"
	"ship/integrations/slack/slacktest"
	"ship/session"
	"ship/session/memory"
)

// notebook is a log that several may write to.
type notebook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *notebook) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

func (n *notebook) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

// TestSecretsStay: whatever goes wrong, no log, no error, nothing that people
// read and nothing that is kept has a secret in it.
func TestSecretsStay(t *testing.T) {
	t.Parallel()
	var log notebook
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d := newDesk(t, func(c *Config) { c.Logger = logger })
	d.gate.Routes.Default = "acme/widgets"
	secrets := []string{d.BotToken(), d.SigningSecret(), d.AppToken(), "hunter2"}
	file := d.Upload(slacktest.File{Name: "a.log", MIME: "text/plain", By: "ada", Content: []byte("x")})
	_, ds := d.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix it", Files: []string{file}})
	r := d.request(ds...)
	state, _ := d.state.Encode()
	fmt.Fprintf(&log, "%+v %s %+v", d.slack.settings, state, Settings{BotToken: config.NewSecret(d.BotToken()), AppToken: config.NewSecret(d.AppToken()), SigningSecret: config.NewSecrets(d.SigningSecret())}.Validate())
	for _, fault := range []slacktest.Fault{
		{Status: 500, Body: "hunter2"}, {Status: 200, Body: "<html>"}, {Status: 200, Body: `{"ok":false}`}, {Status: 404}, {Lost: true},
		{Status: 307, Header: http.Header{"Location": {"https://127.0.0.1:1/?token=hunter2"}}}, {Status: 200, Body: `{"ok":false,"error":"invalid_auth"}`},
	} {
		for _, on := range []string{"users.info", "conversations.replies", "chat.postMessage", "file", "apps.connections.open"} {
			fault.On, fault.Times = on, 1
			d.ClearFaults()
			d.Inject(fault)
			d.slack.app.directory, d.slack.app.governor = newDirectory(d.now), newGovernor(&memory.Quota{})
			for _, e := range []session.Effect{
				{Kind: session.Admit, Thread: &r.Thread, Request: &r}, {Kind: session.Say, Thread: &r.Thread, Request: &r, Text: "Hello"},
			} {
				p, err := d.perform(e, true)
				kept, _ := json.Marshal(p)
				fmt.Fprintf(&log, "%s %v\n", kept, err)
			}
			s, err := newSocket(socketConfig{
				AppToken: config.NewSecret(d.AppToken()), APIURL: d.APIURL(), Inbox: newInbox(), Transport: &http.Transport{DisableKeepAlives: true}, Logger: logger,
			})
			if err != nil {
				t.Fatal(err)
			}
			if on == "apps.connections.open" {
				_, err := s.connect(t.Context())
				s.report(t.Context(), err, 0)
			}
		}
	}
	d.ClearFaults()
	c := workOf(d).newCourier()
	for _, at := range []string{"https://files.slack.com/x?t=hunter2", "://hunter2", "https://u:hunter2@files.slack.com/x"} {
		c.doer.Transport = refusedTransport{}
		fmt.Fprintf(&log, "%+v\n", c.bring(t.Context(), fileAt(at), maxFile))
	}
	for range 2 {
		_, err := d.receiver.Receive(t.Context(), http.Header{}, []byte(d.SigningSecret()))
		fmt.Fprintln(&log, err)
	}
	for _, secret := range secrets {
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, secret) {
				t.Errorf("%q is in %.300s", secret, line)
			}
		}
	}
	if !strings.Contains(log.String(), "was not fetched") {
		t.Error("nothing went wrong")
	}
}

// refusedTransport reaches nobody.
type refusedTransport struct{}

func (refusedTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNoFile }

func fileAt(url string) file {
	return file{ID: "F1", Name: "a.txt", Mimetype: "text/plain", Mode: "hosted", URL: url}
}
