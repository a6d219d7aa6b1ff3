package main

import (
	"bufio"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"ship/sandbox/agent/modeltest"
)

// TestLogs: what the agent does and what its commands print can be read while it
// works and afterwards, from any place on, with secrets taken out.
func TestLogs(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{opencode: true, script: modeltest.Steps(
		modeltest.Use(modeltest.Bash("echo begun; echo PASSWORD=correct-horse; sleep 6; printf 'x%.0s' $(seq 20); exit 3")),
		modeltest.Use(modeltest.Write("DONE.md", "done\n")), modeltest.Say("It is done."),
	)})
	r.start()
	r.deliver(r.says(r.issue, "/ship do it"))
	r.await("the session", patience, func() bool { return len(r.states()) == 1 })
	id := string(r.states()[0].ID)
	cmd := exec.CommandContext(t.Context(), program(t), "sessions", "logs", "-f", id, "--config", r.config)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var followed []string
	for s := bufio.NewScanner(out); s.Scan(); {
		followed = append(followed, s.Text())
		if strings.HasPrefix(s.Text(), "said: ") {
			break
		}
		if s.Text() == "  begun" && !(&slackRig{rig: r}).atWork() {
			t.Error("what a command prints is only seen when it has ended")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("an interrupted look at the logs: %v", err)
	}
	text := strings.Join(followed, "\n") + "\n"
	for _, want := range []string{"bash: ", "  begun\n", "  PASSWORD=[redacted]\n", "  xxxxxxxxxxxxxxxxxxxx\n", "  failed: exit code 3\n", "write: ", "said: It is done.\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is there %d times in:\n%s", want, strings.Count(text, want), text)
		}
	}
	r.ended(r.issue, patience)
	whole, _ := run(t, "sessions", "logs", id, "--config", r.config)
	cursor := regexp.MustCompile(`(?m)^--from (\S+) goes on from here\n`).FindStringSubmatch(whole)
	if cursor == nil || !strings.HasPrefix(whole, text) || !strings.HasSuffix(whole, cursor[0]) {
		t.Fatalf("afterwards the logs are:\n%s\nwhile it worked they were:\n%s", whole, text)
	}
	if rest, ok := run(t, "sessions", "logs", id, "--from", cursor[1], "--config", r.config); !ok || rest != cursor[0] {
		t.Errorf("after the end there is %q", rest)
	}
	wants(t, false, "none of ours", "sessions", "logs", id, "--from", "nonsense", "--config", r.config)
	r.stop()
}
