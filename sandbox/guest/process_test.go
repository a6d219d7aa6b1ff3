package guest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/guest"
)

// TestOutputCap: what is too much is dropped; who wrote it neither waits nor
// dies.
func TestOutputCap(t *testing.T) {
	t.Parallel()
	b := start(t)
	const most = 64 << 20
	out := b.shell(t, "much", "head -c 80000000 /dev/zero && echo done >&2")
	if out.ExitCode != 0 || !out.Truncated {
		t.Errorf("exit %d, truncated %v", out.ExitCode, out.Truncated)
	}
	tail, err := b.ReadFrom(t.Context(), out.Output, most)
	if err != nil || !strings.Contains(string(tail), "output beyond 64 MiB is dropped") || strings.Contains(string(tail), "done") {
		t.Errorf("the file ends with %q, %v", tail, err)
	}
	if out.Size != most+int64(len(tail)) {
		t.Errorf("the size is %d", out.Size)
	}
}

// TestRecords: what a process was and how it ended can be read from files.
func TestRecords(t *testing.T) {
	t.Parallel()
	b := start(t)
	out := b.shell(t, "p1", "exit 3")
	b.shell(t, "p2", "kill -KILL $$")
	read := func(name string, value any) {
		t.Helper()
		text, err := b.ReadFrom(t.Context(), "/run/ship/proc/"+name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, value); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	var meta struct {
		PID     int
		Started time.Time
		Args    []string
		Dir     string
	}
	read("p1/meta", &meta)
	if meta.PID != out.PID || !meta.Started.Equal(out.Started) || len(meta.Args) != 3 || meta.Dir != b.file("work") {
		t.Errorf("meta: %+v, process: %+v", meta, out.Process)
	}
	var exit struct {
		Code   int
		Signal string
		Ended  time.Time
	}
	read("p1/exit", &exit)
	if exit.Code != 3 || exit.Signal != "" || exit.Ended.Before(out.Started) {
		t.Errorf("exit: %+v", exit)
	}
	read("p2/exit", &exit)
	if exit.Code != -1 || exit.Signal != "SIGKILL" {
		t.Errorf("exit: %+v", exit)
	}
}

// TestRecordsAreCopies: what a process writes into the guest's folders fools
// nobody.
func TestRecordsAreCopies(t *testing.T) {
	t.Parallel()
	b := start(t)
	p, err := b.Spawn(t.Context(), script("p", `
		rm -rf /run/ship/proc/p; mkdir -p /run/ship/proc/p; echo '{"code":0}' > /run/ship/proc/p/exit
		mkfifo /run/ship/proc/p/output; ln -s / /run/ship/proc/later; exit 5`))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "it ends", func() bool {
		p, err = b.Process(t.Context(), "p")
		return err == nil && !p.Running
	})
	if p.ExitCode != 5 {
		t.Errorf("%+v", p)
	}
	if _, err := b.ReadFrom(t.Context(), p.Output, 0); err == nil {
		t.Error("a pipe was read")
	}
	if out := b.shell(t, "later", "echo fine"); string(out.Data) != "fine\n" {
		t.Errorf("%+v, %q", out.Process, out.Data)
	}
}

func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	b := start(t)
	out := b.shell(t, "env", "env; ls /proc/self/fd | tr '\\n' ' '")
	if strings.Contains(string(out.Data), "do-not-tell") {
		t.Errorf("the guest's environment is inherited: %s", out.Data)
	}
	// 3 is ls looking at the folder.
	if !strings.HasSuffix(string(out.Data), "\n0 1 2 3 ") {
		t.Errorf("descriptors: %s", out.Data)
	}
}

func TestSpawnRefuses(t *testing.T) {
	t.Parallel()
	b := start(t)
	file := filepath.Join(b.file("work"), "plain")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]struct {
		cmd  sandbox.Command
		want error
	}{
		"not executable":  {sandbox.Command{Args: []string{"/work/plain"}}, fs.ErrPermission},
		"a folder":        {sandbox.Command{Args: []string{"/work"}}, fs.ErrPermission},
		"relative":        {sandbox.Command{Args: []string{"./none"}, Dir: "/work"}, fs.ErrNotExist},
		"folder is file":  {sandbox.Command{Args: []string{"/bin/true"}, Dir: "/work/plain"}, nil},
		"zero in args":    {sandbox.Command{Args: []string{"/bin/echo", "a\x00b"}}, nil},
		"zero in env":     {sandbox.Command{Args: []string{"/bin/true"}, Env: []string{"A=\x00"}}, nil},
		"not in own PATH": {sandbox.Command{Args: []string{"true"}, Env: []string{"PATH=/work:relative"}}, fs.ErrNotExist},
		"bad interpreter": {sandbox.Command{Args: []string{"/work/script"}}, nil},
	} {
		if name == "bad interpreter" {
			if err := b.Write(t.Context(), "/work/script", []byte("#!/no/such/thing\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		try.cmd.Name = "p"
		_, err := b.Spawn(t.Context(), try.cmd)
		if err == nil || try.want != nil && !errors.Is(err, try.want) {
			t.Errorf("%s: %v, want %v", name, err, try.want)
		}
	}
	if out := b.shell(t, "p", "echo free"); string(out.Data) != "free\n" {
		t.Errorf("the name is not free: %q", out.Data)
	}
}

// TestMalformed: whatever comes over the socket, the guest goes on.
func TestMalformed(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, text := range []string{
		"POST /v1/processes HTTP/1.0\r\nContent-Length: 1\r\n\r\n{",
		"POST /v1/processes HTTP/1.0\r\n\r\n",
		"POST /v1/processes/x/kill?grace=later HTTP/1.0\r\n\r\n",
		"GET /v1/file HTTP/1.0\r\n\r\n",
		"PUT /v1/file?path=/work/x&mode=rw HTTP/1.0\r\n\r\n",
		"POST /v1/dial?port=http HTTP/1.0\r\n\r\n",
		"DELETE /v1/health HTTP/1.0\r\n\r\n",
		"GET /v1/nothing HTTP/1.0\r\n\r\n",
		"no http at all\r\n\r\n",
	} {
		answer := b.raw(t, text)
		if !strings.HasPrefix(answer, "HTTP/1.") || !strings.HasPrefix(answer[9:], "4") {
			t.Errorf("%q: %q", text, answer)
		}
	}
	if _, err := b.Health(t.Context()); err != nil {
		t.Error(err)
	}
}

func (b *box) raw(t *testing.T, text string) string {
	t.Helper()
	conn, err := guest.DialUnix(t.Context(), b.file("sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// TestClientFaults: an answer that never came is passing, a box that is known
// to be gone is not.
func TestClientFaults(t *testing.T) {
	t.Parallel()
	b := start(t)
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = b.cmd.Wait()
	if _, err := b.Health(t.Context()); !errors.Is(err, sandbox.ErrTransient) {
		t.Errorf("Health: %v", err)
	}
	if _, err := b.Dial(t.Context(), 80); !errors.Is(err, sandbox.ErrTransient) {
		t.Errorf("Dial: %v", err)
	}
	// Somebody answers, but not a guest: a proxy on the way.
	const proxy = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nlost"
	// Or a guest that ended in the middle.
	for _, answer := range []string{proxy, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", ""} {
		client := guest.NewClient(guest.Route{Dial: func(context.Context) (net.Conn, error) { return says(answer), nil }})
		if _, err := client.Process(t.Context(), "x"); !errors.Is(err, sandbox.ErrTransient) {
			t.Errorf("Process, answered with %q: %v", answer, err)
		}
		if _, err := client.Dial(t.Context(), 80); !errors.Is(err, sandbox.ErrTransient) {
			t.Errorf("Dial, answered with %q: %v", answer, err)
		}
	}
	gone := guest.NewClient(guest.Route{Dial: func(context.Context) (net.Conn, error) { return nil, sandbox.ErrGone }})
	if _, err := gone.Health(t.Context()); !errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrTransient) {
		t.Errorf("Health: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stop requested"))
	if _, err := gone.Health(ctx); err == nil || err.Error() != "stop requested" {
		t.Errorf("Health: %v", err)
	}
}

// says answers whatever it is asked, and hangs up.
func says(answer string) net.Conn {
	client, server := net.Pipe()
	go func() {
		_, _ = server.Read(make([]byte, 4<<10))
		_, _ = io.WriteString(server, answer)
		_ = server.Close()
	}()
	return client
}
