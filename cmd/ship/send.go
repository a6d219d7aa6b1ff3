package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ship/config"
	"ship/integrations/github/githubtest"
)

// sendOptions are the flags of `ship send`.
type sendOptions struct {
	config, url, secret, event, delivery string
	fixture                              fixture
}

func sendCommand() *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use:   "send PLATFORM FIXTURE",
		Short: "Sign a webhook and deliver it to a running ship",
		Long: `Signs a webhook with the secret of the settings and delivers it, as the platform
would. FIXTURE is a file with a JSON body (then --event says what it is), "-"
for standard input, or one of

  github ping      what GitHub sends when a webhook is set up
  github comment   somebody comments on an issue (--repo, --number, --login, --text)
  github label     somebody puts the label ship on an issue
  linear ping      signed as Linear does, and of no consequence
  slack ping       what Slack sends when the address is typed in

A body of Linear's says itself what it is, and is stamped with the time before it
is signed. One of Slack's is an event or an interaction in JSON, or the form of a
slash command.
The answer's status and line are printed; the command fails unless it is 2xx.`,
		Example: `  ship send github comment --repo acme/widgets --repo-id 1 --installation 99 --text "/ship fix the build"
  ship send github payload.json --event issue_comment
  ship send linear payload.json
  ship send slack payload.json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return send(cmd.Context(), o, args[0], args[1], cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.config, "config", "", "settings file")
	f.StringVar(&o.url, "url", "", "address of ship (default: listen of the settings)")
	f.StringVar(&o.secret, "secret-file", "", "file with the secret to sign with (default: that of the settings)")
	f.StringVar(&o.event, "event", "", "event name, for a file of GitHub's")
	f.StringVar(&o.delivery, "delivery", "", "delivery id, not for Slack (default: a new one)")
	f.StringVar(&o.fixture.repo, "repo", "acme/widgets", "repository of a fixture")
	f.Int64Var(&o.fixture.repoID, "repo-id", 1, "its id")
	f.Int64Var(&o.fixture.installation, "installation", 1, "id of the app's installation on it")
	f.IntVar(&o.fixture.number, "number", 1, "issue or pull request of a fixture")
	f.StringVar(&o.fixture.login, "login", "octocat", "who acts in a fixture")
	f.StringVar(&o.fixture.text, "text", "/ship status", "what the comment says")
	return cmd
}

func send(ctx context.Context, o sendOptions, platform, what string, out io.Writer) error {
	s, err := readSettings(o.config, os.Environ())
	if err != nil {
		return err
	}
	var d signed
	switch platform {
	case "github":
		d, err = o.github(s, what)
	case "linear":
		d, err = o.linear(s, what)
	case "slack":
		d, err = o.slack(s, what)
	default:
		return fmt.Errorf("%q is not a platform that ship knows; there are: github, linear, slack", platform)
	}
	if err != nil {
		return err
	}
	url := o.url
	if url == "" {
		url = "http://" + s.Listen
	}
	return deliver(ctx, strings.TrimRight(url, "/")+"/webhooks/"+platform, d, out)
}

// signed is a webhook that is ready to be delivered.
type signed struct {
	id     string
	header http.Header
	body   []byte
}

func (o sendOptions) github(s Settings, what string) (signed, error) {
	event, body, err := o.body(what)
	if err != nil {
		return signed{}, err
	}
	secret, err := o.signingSecret("github.webhook_secret", s.GitHub.WebhookSecret)
	if err != nil {
		return signed{}, err
	}
	id := cmp.Or(o.delivery, newGUID())
	d := githubtest.Delivery{Body: body, Header: http.Header{
		"Content-Type": {"application/json"}, "X-Github-Event": {event}, "X-Github-Delivery": {id},
	}}.Sign(secret)
	return signed{id, d.Header, d.Body}, nil
}

func deliver(ctx context.Context, url string, d signed, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.body))
	if err != nil {
		return fmt.Errorf("deliver: %w", err)
	}
	req.Header = d.header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("deliver: %w (is `ship serve` running there?)", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	fmt.Fprintf(out, "%s %s: %s", d.id, resp.Status, strings.TrimRight(string(answer), "\n")+"\n")
	if resp.StatusCode/100 != 2 {
		return errors.New("the delivery was not accepted")
	}
	return nil
}

// signingSecret is the one of the flags, else the first of those in the settings
// under a key.
func (o sendOptions) signingSecret(key string, secrets config.Secrets) (string, error) {
	if o.secret != "" {
		b, err := os.ReadFile(o.secret)
		if err != nil {
			return "", fmt.Errorf("read the secret: %w", err)
		}
		return strings.TrimSpace(string(b)), nil
	}
	if len(secrets) > 0 {
		return secrets[0].Reveal(), nil
	}
	return "", fmt.Errorf("%s is not set; give --secret-file", key)
}

// body returns the event's name and the bytes to sign.
func (o sendOptions) body(what string) (event string, body []byte, err error) {
	switch what {
	case "ping", "comment", "label":
		return o.fixture.render(what)
	}
	if body, err = readFixture(what); err != nil {
		return "", nil, err
	}
	if o.event == "" {
		return "", nil, errors.New("say which event the file is: --event issue_comment")
	}
	return o.event, body, nil
}

// readFixture reads a file, or standard input for "-".
func readFixture(path string) (body []byte, err error) {
	if path == "-" {
		body, err = io.ReadAll(os.Stdin)
	} else {
		body, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the fixture: %w", err)
	}
	return body, nil
}

// fixture is what varies in the fixtures that ship brings along.
type fixture struct {
	repo, login, text    string
	repoID, installation int64
	number               int
}

func (f fixture) render(what string) (event string, body []byte, err error) {
	owner, name, ok := strings.Cut(f.repo, "/")
	if !ok {
		return "", nil, fmt.Errorf("--repo is OWNER/NAME, not %q", f.repo)
	}
	type object = map[string]any
	user := object{"login": f.login, "id": 1, "type": "User"}
	payload := object{
		"sender": user, "installation": object{"id": f.installation},
		"repository": object{
			"id": f.repoID, "name": name, "full_name": f.repo, "owner": object{"login": owner}, "default_branch": "main",
		},
		"issue": object{"id": 1, "number": f.number, "title": "An issue", "body": "", "state": "open", "user": user},
	}
	switch what {
	case "ping":
		event, payload = "ping", object{"zen": "Keep it logically awesome.", "hook_id": 1}
	case "label":
		event, payload["action"], payload["label"] = "issues", "labeled", object{"name": "ship"}
	default:
		now := time.Now().UTC().Format(time.RFC3339)
		event, payload["action"] = "issue_comment", "created"
		payload["comment"] = object{
			"id": time.Now().UnixMilli(), "body": f.text, "user": user,
			"author_association": "MEMBER", "created_at": now, "updated_at": now,
		}
	}
	body, err = json.Marshal(payload)
	return event, body, err
}

// newGUID has the shape of the platforms' delivery ids.
func newGUID() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails: the runtime ends the program instead
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
