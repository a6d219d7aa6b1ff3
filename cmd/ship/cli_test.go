package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ship/session"
)

// run runs ship as a person would, in a folder without settings, and returns
// what it printed and whether it succeeded.
func run(t *testing.T, args ...string) (out string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + cmd.Dir}
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), err == nil
}

// wants runs a command and looks for words in what it prints.
func wants(t *testing.T, ok bool, words string, args ...string) string {
	t.Helper()
	out, succeeded := run(t, args...)
	if succeeded != ok || !strings.Contains(out, words) {
		t.Errorf("ship %s: succeeded %t, wanted %q:\n%s", strings.Join(args, " "), succeeded, words, out)
	}
	return out
}

// TestCommandLine: what is wrong with a command line or with what is around is
// said in a line, with what to do.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	wants(t, true, "ship ", "version")
	for _, command := range []string{"serve", "demo", "send", "sessions", "deliveries", "version"} {
		wants(t, true, command+" ", "help")
		wants(t, true, "Usage:", "help", command)
	}
	wants(t, false, "only send and serve", "serv")
	wants(t, false, "see `ship --help`", "nonsense")
	wants(t, false, "see `ship sessions --help`", "sessions", "nonsense")
	wants(t, false, "`ship sessions show ID", "sessions", "show")
	wants(t, false, "see `ship send --help`", "send", "github")
	wants(t, false, "see `ship serve --help`", "serve", "--port", "80")
	wants(t, false, "intake, worker or all", "serve", "--role", "boss")
	wants(t, false, "there is no file", "sessions", "list", "--config", "nowhere.yaml")
	wants(t, false, "`ship serve` has to be running", "sessions", "list")
	wants(t, false, "there are: github, linear", "send", "gitlab", "ping")
	wants(t, false, "--secret-file", "send", "github", "ping")
	wants(t, false, "no such file", "send", "github", "nothing.json")
	if out, _ := run(t, "nonsense"); strings.Count(out, "\n") != 1 {
		t.Errorf("a complaint of several lines:\n%s", out)
	}
}

// TestOperator follows a session from the command line.
func TestOperator(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	pr := r.draft().Number
	r.start()
	with := func(args ...string) []string { return append(args, "--config", r.config) }
	wants(t, true, "SESSION", with("sessions", "list")...)
	wants(t, true, "CAUSE", with("deliveries", "list")...)
	wants(t, false, "`ship sessions list`", with("sessions", "show", "gh.1.1")...)
	wants(t, false, "`ship sessions list`", with("sessions", "logs", "gh.1.1")...)

	r.deliver(r.says(pr, "/ship SLOWLY"))
	r.await("the agent to be at work", patience, func() bool { return r.working(1) })
	id := string(r.states()[0].ID)
	wants(t, true, "working", with("sessions", "list")...)
	wants(t, false, "still at it", with("sessions", "retry", id)...)
	wants(t, true, "told to stop", with("sessions", "stop", id)...)
	r.endedTurns(1, patience)
	wants(t, true, "stopped", with("sessions", "list")...)
	if text := r.sticky(pr); !strings.Contains(text, "Stopped by the operator") {
		t.Errorf("the comment says:\n%s", text)
	}
	wants(t, false, "nothing to stop", with("sessions", "stop", id)...)
	wants(t, true, "told to retry", with("sessions", "retry", id)...)
	r.await("the agent to be at work again", patience, func() bool { return r.working(2) })
	var s session.State
	if err := json.Unmarshal([]byte(wants(t, true, id, with("sessions", "show", id)...)), &s); err != nil || s.Turns != 2 {
		t.Errorf("turn %d, %v", s.Turns, err)
	}
	wants(t, true, "told to stop", with("sessions", "stop", id)...)
	r.endedTurns(2, patience)
	wants(t, true, "", with("sessions", "logs", id)...)
	r.stop()
	wants(t, true, id, with("sessions", "list")...) // Redis is still there
}

// TestSend: a person signs and delivers webhooks.
func TestSend(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	with := func(args ...string) []string {
		return append(append([]string{"send", "github"}, args...), "--config", r.config)
	}
	wants(t, false, "is `ship serve` running there?", with("ping")...)
	r.start()
	wants(t, true, "200 OK: nothing to do: ping", with("ping")...)
	d := r.says(r.issue, "/ship status")
	file := filepath.Join(r.dir, "payload.json")
	if err := os.WriteFile(file, d.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, false, "--event", with(file)...)
	wants(t, true, "200 OK: accepted", with(file, "--event", "issue_comment", "--delivery", d.GUID())...)
	wants(t, true, "200 OK: already have it", with(file, "--event", "issue_comment")...)
	r.await("the answer", patience, func() bool { return r.said(r.issue, "<!-- ship:say=") == 1 })

	wrong := filepath.Join(r.dir, "secret")
	if err := os.WriteFile(wrong, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, false, "401", with("comment", "--secret-file", wrong)...)
	r.stop()
}
