package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/docker"
)

// TestRealEngine: the whole way with boxes of a real container engine and the
// OpenCode of its image: a turn whose ship is killed in the middle, a pause, a
// second turn that wakes the same container, and its end. SHIP_TEST_DOCKER_IMAGE
// names an image made by `make image`, DOCKER_HOST the engine; the test has to
// run with CGO_ENABLED=0, as its ship is the guest.
func TestRealEngine(t *testing.T) {
	image := os.Getenv("SHIP_TEST_DOCKER_IMAGE")
	if image == "" {
		t.Skip("SHIP_TEST_DOCKER_IMAGE is not set: there is no engine to try")
	}
	host := os.Getenv("DOCKER_HOST")
	if host == "" {
		host = "unix:///var/run/docker.sock"
	}
	r := newRig(t, rigOptions{script: fixScript(), more: `sandbox:
  provider: docker
  idle_pause: 10s
  idle_destroy: 1m
  docker: {host: "` + host + `", image: "` + image + `", memory: 2GiB}
`})
	r.useImageAgent()
	boxes, err := docker.New(docker.Config{
		Settings: docker.Settings{Host: host, Image: image}, Dir: filepath.Join(r.dir, "data", "containers"),
	})
	if err != nil {
		t.Fatal(err)
	}
	state := func() (id string, s sandbox.State) {
		t.Helper()
		infos, err := boxes.List(t.Context(), nil)
		if err != nil || len(infos) > 1 {
			t.Fatalf("boxes: %+v, %v", infos, err)
		}
		if len(infos) == 0 {
			return "", ""
		}
		return infos[0].ID, infos[0].State
	}
	began := time.Now()
	step := func(what string) { t.Logf("%6.1f s  %s", time.Since(began).Seconds(), what) }

	r.start()
	r.deliver(r.says(r.issue, "/ship do the three steps"))
	r.await("the agent's second step", patience, func() bool { return r.model.Tally("scripted").Requests >= 2 })
	step("the agent works")
	first, _ := state()
	r.kill()
	if id, s := state(); id != first || s != sandbox.Running {
		t.Errorf("without ship there is box %s, %s", id, s)
	}
	r.start()
	r.ended(r.issue, patience)
	step("the first turn has ended, after a crash of ship")
	prs := r.host.PullRequests(rigRepo)
	if len(prs) != 1 {
		t.Fatalf("pull requests: %+v", prs)
	}
	if steps, _ := r.host.File(rigRepo, prs[0].Head, "STEPS.md"); strings.TrimSpace(steps) != "step one\nstep two\nstep three" {
		t.Errorf("the steps on the branch: %q", steps)
	}
	r.await("the pause", patience, func() bool { _, s := state(); return s == sandbox.Paused })
	step("the box is paused")
	asked := r.model.Tally("scripted").Requests
	r.deliver(r.says(prs[0].Number, "/ship and once more"))
	r.await("the second turn's work", patience, func() bool { return r.model.Tally("scripted").Requests > asked })
	if id, s := state(); id != first || s != sandbox.Running {
		t.Errorf("the second turn has box %s, %s; the first had %s", id, s, first)
	}
	r.ended(prs[0].Number, patience)
	step("the second turn has ended, in the same box")
	r.await("the end of the box", patience, func() bool { id, _ := state(); return id == "" })
	step("the box is gone")
	r.stop()
}

// useImageAgent leaves it to the image which agent there is.
func (r *rig) useImageAgent() {
	r.t.Helper()
	text, err := os.ReadFile(r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^  opencode: .*\n`).ReplaceAll(text, nil)
	if err := os.WriteFile(r.config, text, 0o600); err != nil {
		r.t.Fatal(err)
	}
}
