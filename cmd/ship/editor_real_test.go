package main

import (
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealEditor: code-server itself, as npm installs it, shows its workbench.
// SHIP_TEST_CODE_SERVER is the folder that it was installed to by npm --prefix.
func TestRealEditor(t *testing.T) {
	t.Parallel()
	from := os.Getenv("SHIP_TEST_CODE_SERVER")
	if from == "" {
		t.Skip("set SHIP_TEST_CODE_SERVER to where npm --prefix has installed code-server")
	}
	r := newRig(t, rigOptions{})
	r.start()
	r.deliver(r.says(r.issue, "/ship turn it SLOWLY"))
	r.await("the agent to be at work", patience, func() bool { return r.working(1) })
	home := filepath.Join(filepath.Dir(r.boxes()[0]), "work", "home")
	if out, err := exec.Command("cp", "-a", "--no-preserve=ownership", from, filepath.Join(home, "code-server")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.install("real", "#!/bin/sh\nexec node \"$HOME/code-server/node_modules/code-server/out/node/entry.js\" \"$@\"\n")
	link, cmd := r.editor("sessions", "attach", string(r.states()[0].ID), "--config", r.config, "--editor")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	status, body := visit(t, browser, link)
	if status != http.StatusOK || !strings.Contains(body, "workbench") || !strings.Contains(body, "/work/home/.editor") {
		t.Errorf("the editor: %d\n%.2000s", status, body)
	}
	path, _, _ := strings.Cut(link, "?")
	if status, body := visit(t, browser, path+"healthz"); status != http.StatusOK || !strings.Contains(body, "status") {
		t.Errorf("its health: %d, %s", status, body)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its status is that of a program that was interrupted
	r.await("the editor to end", patience, func() bool { return len(r.editors()) == 0 })
	r.stop()
}
