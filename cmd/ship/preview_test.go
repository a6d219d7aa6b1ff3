package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"ship/sandbox/agent/modeltest"
)

// serving starts a small web server in a box that outlives the agent's tool, and
// says which port it has.
const serving = `setsid nohup perl -MIO::Socket::INET -e '
my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:3000", Listen => 5, ReuseAddr => 1) or die;
while (my $c = $s->accept) { my $l = <$c>; while (<$c>) { last if /^\r?\n$/ } print $c "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nasked: $l"; close $c }
' >/tmp/server.log 2>&1 &
echo 3000 > /run/ship/preview`

var previewLink = regexp.MustCompile(`\[Preview\]\(http://preview\.test(/preview/[\w.-]+/)\)`)

// TestPreview: the real agent starts a server, people get a link to it, and
// see it there and nowhere else; the operator gets into the same box.
func TestPreview(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		t.Skip("there is no perl for the server in the box")
	}
	r := newRig(t, rigOptions{opencode: true, more: "preview:\n  url: http://preview.test\n", script: modeltest.Steps(
		modeltest.Use(modeltest.Bash(serving)), modeltest.Use(modeltest.Write("DONE.md", "done\n")), modeltest.Say("It is there to be seen."),
	)})
	r.start()
	r.deliver(r.says(r.issue, "/ship show it"))
	text := r.ended(r.issue, patience)
	link := previewLink.FindStringSubmatch(text)
	if link == nil {
		t.Fatalf("no link to a preview:\n%s", text)
	}
	if status, body := r.get("preview.test", link[1]+"a?b"); status != http.StatusOK || !strings.HasPrefix(body, "asked: GET /a?b HTTP/1.1") {
		t.Errorf("the preview: %d, %s", status, body)
	}
	for _, c := range []struct {
		host, path string
		want       int
	}{
		{"", link[1], http.StatusNotFound}, // ship itself shows none of it
		{"preview.test", "/healthz", http.StatusNotFound},
		{"preview.test", "/broker/", http.StatusNotFound},
		{"preview.test", strings.Replace(link[1], ".", ".x", 1), http.StatusNotFound},
		{"", "/healthz", http.StatusOK},
	} {
		if status, body := r.get(c.host, c.path); status != c.want {
			t.Errorf("%s%s: %d, want %d: %s", c.host, c.path, status, c.want, body)
		}
	}
	r.attaches()
	r.stop()
}

// get asks ship by one of its names; empty: that which it listens on.
func (r *rig) get(host, path string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.addr+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Host = host
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// attaches goes into the box of the only session, in each way that there is, and
// stays out when the box is gone.
func (r *rig) attaches() {
	r.t.Helper()
	t := r.t.(*testing.T)
	state := r.states()[0]
	args := []string{"sessions", "attach", string(state.ID), "--config", r.config}
	wants(t, true, "done\n", append(args, "--command", "cat DONE.md")...)
	wants(t, false, "exit code 7", append(args, "--command", "exit 7")...)
	wants(t, false, "--command", args...) // without a terminal
	if _, err := exec.LookPath("script"); err == nil {
		cmd := exec.CommandContext(t.Context(), "script", "-qec", program(t)+" "+strings.Join(args, " "), "/dev/null")
		cmd.Stdin = strings.NewReader("cat DONE.md | tr a-z A-Z; exit\n")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "DONE\r\n") {
			t.Errorf("%v: %s", err, out)
		}
	}
	killBoxes(t, r.dir+"/data")
	wants(t, false, "does not live on this machine", args...)
}
