package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// standInEditor takes what code-server is told on its command line, and answers
// with what it was asked. A WebSocket it opens as any server does that is given
// handshakeKey, and repeats what comes.
const standInEditor = `#!/usr/bin/perl
use IO::Socket::INET;
my ($at) = map { $ARGV[$_ + 1] } grep { $ARGV[$_] eq "--bind-addr" } 0 .. $#ARGV;
my $s = IO::Socket::INET->new(LocalAddr => $at, Listen => 5, ReuseAddr => 1) or die;
while (my $c = $s->accept) {
	my $l = <$c>; my ($h, $o, $up) = ("", "");
	while (<$c>) { last if /^\r?\n$/; $h .= $_ if /cookie/i; $o = $_ if /^origin:/i; $up = 1 if /^upgrade: *websocket/i }
	if ($up) {
		print $c "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nX-Asked: $l" . "X-From: " . ($o || "nobody\r\n") . "\r\n";
		$c->flush; while (sysread $c, my $d, 4096) { syswrite $c, $d } close $c; next
	}
	print $c "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nasked: $l$h in $ARGV[-1]"; close $c
}
`

// TestEditor: the operator, and nobody else, gets to an editor in the box, which
// ends with the command or with the box.
func TestEditor(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		t.Skip("there is no perl for the stand-in for code-server")
	}
	r := newRig(t, rigOptions{})
	r.start()
	r.deliver(r.says(r.issue, "/ship turn it SLOWLY"))
	r.await("the agent to be at work", patience, func() bool { return r.working(1) })
	args := []string{"sessions", "attach", string(r.states()[0].ID), "--config", r.config, "--editor"}
	wants(t, false, "--listen is an address of this machine", append(args, "--listen", "0.0.0.0:0")...)
	if _, err := exec.LookPath("code-server"); err != nil {
		wants(t, false, "the box has no code-server", args...)
	}
	r.install("broken", "#!/bin/sh\necho it cannot begin >&2; exit 3\n")
	wants(t, false, "it cannot begin", args...)
	r.install("stand-in", standInEditor)

	link, cmd := r.editor(args...)
	visits(t, link)
	if got := r.editors(); len(got) != 1 {
		t.Errorf("processes of editors: %v", got)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its status is that of a program that was interrupted
	r.await("the editor to end with the command", patience, func() bool { return len(r.editors()) == 0 })

	_, cmd = r.editor(args...)
	killBoxes(t, r.dir+"/data")
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() <= 0 {
		t.Errorf("without its box, the editor ends with %v", err)
	}
	r.stop()
}

// install puts a code-server into the only box, where its installer would.
func (r *rig) install(what, program string) {
	r.t.Helper()
	dir := filepath.Join(filepath.Dir(r.boxes()[0]), "work", "home", ".local", "bin")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "code-server"), []byte(program), 0o755)); err != nil {
		r.t.Fatalf("install the %s editor: %v", what, err)
	}
}

var editorLink = regexp.MustCompile(`http://127\.0\.0\.1:\d+/preview/\S+`)

// editor runs ship until it has printed the link.
func (r *rig) editor(args ...string) (link string, cmd *exec.Cmd) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, program(r.t), args...)
	cmd.Stderr = r.log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if link = editorLink.FindString(lines.Text()); link != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return link, cmd
		}
	}
	r.t.Fatalf("there is no link to the editor: %v", cmd.Wait())
	return "", nil
}

// editors are the processes of editors in the rig's boxes.
func (r *rig) editors() (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		root, linkErr := os.Readlink(filepath.Join(filepath.Dir(path), "cwd"))
		if err == nil && linkErr == nil && strings.Contains(string(text), "--bind-addr") && strings.Contains(root, "/work") {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// visits uses the link as its operator does, and as somebody who has found it.
func visits(t *testing.T, link string) {
	t.Helper()
	path, _, _ := strings.Cut(link, "?")
	if status, body := visit(t, &http.Client{}, path); status != http.StatusForbidden {
		t.Errorf("without the key: %d, %s", status, body)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	status, body := visit(t, browser, link)
	if status != http.StatusOK || !strings.Contains(body, "asked: GET / HTTP/1.1") || !strings.Contains(body, "in /work/repo") {
		t.Errorf("the editor: %d, %s", status, body)
	}
	if status, body := visit(t, browser, path+"a?b"); status != http.StatusOK || !strings.Contains(body, "asked: GET /a?b") || strings.Contains(strings.ToLower(body), "cookie") {
		t.Errorf("the editor's second page: %d, %s", status, body)
	}
	opensSocket(t, browser, path)
	if status, body := visit(t, &http.Client{}, link); status != http.StatusForbidden || !strings.Contains(body, "used before") {
		t.Errorf("the link for the second time: %d, %s", status, body)
	}
}

// handshakeKey and handshakeAccept belong together, as RFC 6455, section 1.3, says.
const (
	handshakeKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	handshakeAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// opensSocket wants a WebSocket to go through the door both ways, for the operator's
// browser alone.
func opensSocket(t *testing.T, browser *http.Client, path string) {
	t.Helper()
	at, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	stranger := upgrade(t, &http.Client{}, path)
	_ = stranger.Body.Close()
	if stranger.StatusCode != http.StatusForbidden {
		t.Errorf("a WebSocket without the cookie: %s", stranger.Status)
	}
	got := upgrade(t, browser, path+"?reconnectionToken=x")
	defer got.Body.Close()
	h, asked := got.Header, strings.Join(got.Header.Values("X-Asked"), "")
	if got.StatusCode != http.StatusSwitchingProtocols || h.Get("Sec-WebSocket-Accept") != handshakeAccept || !strings.HasPrefix(asked, "GET /?reconnectionToken=x ") {
		t.Fatalf("a WebSocket: %s, %v", got.Status, h)
	}
	// code-server lets only its own pages open one, and takes itself for localhost.
	if from := h.Get("X-From"); !strings.Contains(strings.ToLower(from), "origin: http://localhost:") || strings.Contains(from, at.Host) {
		t.Errorf("its origin is told as %q", from)
	}
	through, ok := got.Body.(io.ReadWriter)
	if !ok {
		t.Fatalf("a %T cannot be written to", got.Body)
	}
	for _, frame := range []string{"\x81\x85\x01\x02\x03\x04ignmn", "\x82\x83\x00\x00\x00\x00\x00\xff\x00"} {
		back := make([]byte, len(frame))
		if _, err := io.WriteString(through, frame); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(through, back); err != nil || string(back) != frame {
			t.Fatalf("what came back: %q, %v", back, err)
		}
	}
}

func upgrade(t *testing.T, client *http.Client, address string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": handshakeKey, "Origin": "http://" + request.URL.Host,
	} {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func visit(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestDoorway: nothing but the key, once, and then the cookie opens it.
func TestDoorway(t *testing.T) {
	t.Parallel()
	d := newDoorway("/preview/x/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inside") }))
	for _, c := range []struct {
		name, method, target, cookie string
		want                         int
	}{
		{"nothing", "GET", "/preview/x/", "", 403},
		{"a wrong key", "GET", "/preview/x/?key=x", "", 403},
		{"another path", "GET", "/?" + d.query(), "", 403},
		{"no look", "POST", "/preview/x/?" + d.query(), "", 403},
		{"a wrong cookie", "GET", "/preview/x/", doorCookie + "=x", 403},
		{"the key for a cookie", "GET", "/preview/x/", doorCookie + "=" + d.key, 403},
		{"the key", "GET", "/preview/x/?" + d.query(), "", 303},
		{"the key again", "GET", "/preview/x/?" + d.query(), "", 403},
		{"the cookie", "GET", "/preview/x/y", doorCookie + "=" + d.pass, 200},
	} {
		request := httptest.NewRequest(c.method, c.target, nil)
		if c.cookie != "" {
			request.Header.Set("Cookie", c.cookie)
		}
		answer := httptest.NewRecorder()
		d.ServeHTTP(answer, request)
		if answer.Code != c.want {
			t.Errorf("%s: %d, want %d", c.name, answer.Code, c.want)
		}
		if c.want == http.StatusSeeOther && (answer.Header().Get("Location") != "/preview/x/" || !strings.Contains(answer.Header().Get("Set-Cookie"), "HttpOnly; SameSite=Strict")) {
			t.Errorf("%s: %v", c.name, answer.Header())
		}
	}
}

// TestDoorwayKeepsCookies: a browser sends what other programs on this machine have
// it remember to every port, and the box is told none of it.
func TestDoorwayKeepsCookies(t *testing.T) {
	t.Parallel()
	var told http.Header
	d := newDoorway("/preview/x/", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told = r.Header }))
	request := httptest.NewRequest(http.MethodGet, "/preview/x/", nil)
	request.Header.Set("Cookie", "username-127-0-0-1-8888=signed-in; "+doorCookie+"="+d.pass+"; grafana_session=signed-in")
	d.ServeHTTP(httptest.NewRecorder(), request)
	if told == nil || told.Get("Cookie") != "" {
		t.Errorf("the box is told %q", told)
	}
}

// TestEditorIsConfined: an editor without a password is only for a box that nobody else
// gets into.
func TestEditorIsConfined(t *testing.T) {
	t.Parallel()
	for isolation, refused := range map[string]bool{"bubblewrap": false, "none": true} {
		path := filepath.Join(t.TempDir(), "ship.yaml")
		if err := os.WriteFile(path, []byte("sandbox: {local: {isolation: "+isolation+"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := confined(path); (err != nil) != refused {
			t.Errorf("%s: %v", isolation, err)
		}
	}
}
