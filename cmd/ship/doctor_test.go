package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/github/githubtest"
)

// clinic is a rig whose settings pass the doctor, if they are not changed.
type clinic struct {
	*rig
}

func newClinic(t *testing.T) *clinic {
	t.Helper()
	c := &clinic{rig: newRig(t, rigOptions{more: "public_url: http://PUBLIC\n"})}
	c.host.InstallationID("acme")
	agent := filepath.Join(c.dir, "opencode")
	writeScript(t, agent, "echo "+opencodeVersion)
	c.edit(regexp.MustCompile(`opencode: .*`), "opencode: "+agent)
	c.edit(regexp.MustCompile(`PUBLIC`), c.addr)
	c.host.SetHook(githubtest.Hook{URL: "http://" + c.addr + "/webhooks/github", ContentType: "json"})
	return c
}

// edit changes the settings.
func (c *clinic) edit(what *regexp.Regexp, with string) {
	c.t.Helper()
	b, err := os.ReadFile(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	if !what.Match(b) {
		c.t.Fatalf("%s is not in the settings", what)
	}
	if err := os.WriteFile(c.config, what.ReplaceAllLiteral(b, []byte(with)), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// doctor runs `ship doctor` as people do, and says whether it failed.
func (c *clinic) doctor(env []string, args ...string) (out string, failed bool) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), program(c.t), append([]string{"doctor", "--config", c.config}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(stderr.String(), "failed")) {
		c.t.Fatalf("%v: %s", err, stderr.String())
	}
	c.mustHide(stdout.String() + stderr.String())
	return c.plain(stdout.String()), err != nil
}

// mustHide wants no secret in what was said.
func (c *clinic) mustHide(said string) {
	c.t.Helper()
	for _, secret := range append(c.secrets(), "BEGIN RSA") {
		if strings.Contains(said, secret) {
			c.t.Errorf("a secret was printed:\n%s", said)
		}
	}
}

// plain takes out what differs between machines and runs.
func (c *clinic) plain(said string) string {
	said = strings.NewReplacer(c.dir, "DIR", c.addr, "SHIP", c.host.URL, "http://HUB").Replace(said)
	for from, to := range map[string]string{
		`(boxes are isolated by bubblewrap; )[^→\n"]*`: "${1}LIMITS", `http://127\.0\.0\.1:\d+`: "http://LOCAL", `127\.0\.0\.1:\d+`: "LOCAL",
		`Redis \d+\.\d+\.\d+`: "Redis VERSION", `\S*/redis-server \d+\.\d+\.\d+`: "redis-server VERSION",
		`(?m)^(?:ok  |warn)(  sandbox .*LIMITS).*`: "ok  $1",
	} {
		said = regexp.MustCompile(from).ReplaceAllString(said, to)
	}
	return said
}

const healthyText = `ok    settings              DIR/ship.yaml is understood
ok    data_dir              DIR/data is writable
ok    broker_key            DIR/data/broker.key can be read, by nobody else
ok    redis                 Redis VERSION survives its own crash and a power cut
ok    sandbox               boxes are isolated by bubblewrap; LIMITS
ok    opencode              DIR/opencode 1.18.33
ok    models.stand-in       http://LOCAL/v1 answers and does not refuse the key
ok    default_model         stand-in/scripted, 3 USD in and 15 USD out per million tokens
ok    serve                 ship runs on SHIP and is ready
ok    github.app            ship, app_id 4242, http://HUB/apps/ship
ok    github.clock          this machine's clock agrees with GitHub's
ok    github.permissions    all that are needed; without workflows: write, GitHub refuses changes below .github/workflows
ok    github.events         all 6 that are handled
ok    github.webhook        GitHub sends JSON to http://SHIP/webhooks/github
ok    github.installations  on 1 account
ok    github.installations  acme: 1 repository
ok    github.ping           http://SHIP/webhooks/github accepts a signed ping
`

// TestDoctor beside a ship that runs, and then without it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	c.start()
	out, failed := c.doctor(nil)
	if diff := cmp.Diff(healthyText, out); diff != "" || failed {
		t.Errorf("failed %t (-want +got):\n%s", failed, diff)
	}
	asJSON, failed := c.doctor(nil, "--json")
	if failed {
		t.Errorf("with --json it fails:\n%s", asJSON)
	}
	var lines []string
	for line := range strings.Lines(asJSON) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, f.Check+" "+string(f.Status))
	}
	if len(lines) != strings.Count(healthyText, "\n") || lines[0] != "settings ok" {
		t.Errorf("as JSON: %v", lines)
	}
	c.stop()
	want := strings.NewReplacer(
		"ok    serve                 ship runs on SHIP and is ready", "warn  serve                 no ship answers on SHIP → start it: ship serve",
		"ok    github.ping           http://SHIP/webhooks/github accepts a signed ping",
		"warn  github.ping           http://SHIP/webhooks/github cannot be reached: dial tcp SHIP: connect: connection refused → run ship doctor again when ship serve runs; if it runs elsewhere: check DNS, the certificate, and the proxy before ship",
	).Replace(healthyText)
	out, failed = c.doctor(nil)
	if diff := cmp.Diff(want, out); diff != "" || failed {
		t.Errorf("without ship: failed %t (-want +got):\n%s", failed, diff)
	}
}

const bareText = `ok    settings              DIR/ship.yaml is understood
ok    data_dir              DIR/data is not there yet; ship serve makes it
ok    broker_key            none yet; ship serve makes one
fail  redis                 embedded: redis-server is not installed → install it (apt install redis-server, dnf install redis), or set redis.url
fail  sandbox               this machine cannot isolate a sandbox: bubblewrap is not installed; install it (apt-get install bubblewrap), or, if this whole machine or container is a sandbox already, set sandbox.local.isolation to none: then the agent can do and read whatever the user that runs ship can → see docs/sandbox.md
fail  opencode              OpenCode is not installed → npm install -g opencode-ai@1.18.33, or set agent.opencode to its path
fail  models.stand-in       http://LOCAL/v1 cannot be reached: dial tcp LOCAL: connect: connection refused → check models.stand-in.base_url and the network
ok    default_model         stand-in/scripted, 3 USD in and 15 USD out per million tokens
warn  serve                 no ship answers on SHIP → start it: ship serve
fail  github.app            GitHub cannot be reached: dial tcp LOCAL: connect: connection refused → check the network and github.api_url
skip  github.clock          not checked, because GitHub did not answer
skip  github.permissions    not checked, because github.app failed
skip  github.events         not checked, because github.app failed
skip  github.webhook        not checked, because github.app failed
skip  github.installations  not checked, because github.app failed
warn  github.ping           nothing was sent: ship does not run, and public_url is not set → run ship doctor again when ship serve runs
`

// TestDoctorOnABareMachine: nothing is installed, and nobody answers.
func TestDoctorOnABareMachine(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	c.edit(regexp.MustCompile(`redis:\n  url: .*\n`), "")
	c.edit(regexp.MustCompile(`  opencode: .*\n`), "")
	c.edit(regexp.MustCompile(`public_url: .*\n`), "")
	c.edit(regexp.MustCompile(`base_url: .*`), "base_url: http://127.0.0.1:1/v1")
	c.edit(regexp.MustCompile(`api_url: .*`), "api_url: http://127.0.0.1:1/api/v3")
	out, failed := c.doctor([]string{"PATH=" + filepath.Join(c.dir, "nothing")})
	if diff := cmp.Diff(bareText, out); diff != "" || !failed {
		t.Errorf("failed %t (-want +got):\n%s", failed, diff)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "data")); err == nil {
		t.Error("the doctor made the data_dir")
	}
}
