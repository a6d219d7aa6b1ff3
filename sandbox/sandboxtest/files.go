package sandboxtest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"testing"
	"time"

	"ship/sandbox"
)

func writeRead(t *testing.T, s suite) {
	box := s.box(t)
	big := bytes.Repeat([]byte{0, 1, 2, 0xff}, 1<<19)
	for _, try := range []struct {
		path string
		data []byte
		mode fs.FileMode
	}{
		{"/work/a", []byte("one"), 0o644},
		{"/work/a", []byte("two, longer"), 0o600},
		{"/work/deep/er/b c+%2F?", nil, 0o755},
		{sandbox.TokenPath, []byte("token"), 0o600},
		{"/work/big", big, 0o644},
	} {
		if err := box.Write(t.Context(), try.path, try.data, try.mode); err != nil {
			t.Fatalf("Write(%s): %v", try.path, err)
		}
		if got := readAll(t, box, try.path); !bytes.Equal(got, try.data) {
			t.Errorf("%s holds %d bytes, want %d", try.path, len(got), len(try.data))
		}
	}
	if out := shell(t, box, "mode", "stat -c %a /work/a /work/deep/er/b*"); string(out.Data) != "600\n755\n" {
		t.Errorf("modes: %s", out.Data)
	}
	if first, err := box.ReadFrom(t.Context(), "/work/big", 0); err != nil || len(first) == 0 || len(first) > 1<<20 {
		t.Errorf("one read returned %d bytes, %v", len(first), err)
	}
	for _, off := range []int64{int64(len(big)), 1 << 40} {
		if data, err := box.ReadFrom(t.Context(), "/work/big", off); err != nil || len(data) != 0 {
			t.Errorf("at %d there are %d bytes, %v", off, len(data), err)
		}
	}
	if _, err := box.ReadFrom(t.Context(), "/work/a", -1); err == nil {
		t.Error("a negative offset was taken")
	}
	_, err := box.ReadFrom(t.Context(), "/work/none", 0)
	wantErr(t, "a file that does not exist", err, fs.ErrNotExist)
	if errors.Is(err, sandbox.ErrGone) {
		t.Error("a file that does not exist is taken for a box that does not")
	}
}

func readAll(t *testing.T, box sandbox.Box, path string) []byte {
	t.Helper()
	var all []byte
	for {
		data, err := box.ReadFrom(t.Context(), path, int64(len(all)))
		if err != nil {
			t.Fatalf("ReadFrom(%s): %v", path, err)
		}
		if len(data) == 0 {
			return all
		}
		all = append(all, data...)
	}
}

// outside are paths that lie where nobody from outside has anything to do.
var outside = []string{
	"/etc/passwd", "/tmp/ship-sandboxtest-outside", "/work", "/run/ship", "/work/", "/", "", "work/x", "x",
	"/work/../tmp/ship-sandboxtest-outside", "/work/a/../../tmp/ship-sandboxtest-outside", "/workshop/x", "/run/shipyard/x",
	"/work/./x", "/work//x", "/run/x", "//work/x", "/work/x\x00",
	"/work/out/x", "/work/up/tmp/ship-sandboxtest-outside", "/run/ship/out/x", "/work/file",
}

// trap leads out of the box's folders by links.
const trap = `ln -sfn /tmp /work/out; ln -sfn ../../../../../../.. /work/up
	ln -sfn /tmp /run/ship/out; ln -sfn /etc/passwd /work/file; mkfifo /work/pipe; echo safe > /tmp/ship-sandboxtest-outside`

func writeConfined(t *testing.T, s suite) {
	box := s.box(t)
	shell(t, box, "trap", trap)
	// Without isolation it lies on the machine itself.
	defer shell(t, box, "clean", "rm -f /tmp/ship-sandboxtest-outside")
	for _, path := range outside[:len(outside)-1] {
		if err := box.Write(t.Context(), path, []byte("bad"), 0o644); err == nil {
			t.Errorf("Write(%q) was not refused", path)
		}
	}
	if out := shell(t, box, "look", "cat /tmp/ship-sandboxtest-outside"); string(out.Data) != "safe\n" {
		t.Errorf("the file outside holds %q", out.Data)
	}
	// Replacing a link is not following it.
	if err := box.Write(t.Context(), "/work/file", []byte("mine"), 0o644); err != nil {
		t.Errorf("Write over a link: %v", err)
	}
	if out := shell(t, box, "passwd", "test -h /work/file || cat /work/file; grep -c mine /etc/passwd"); string(out.Data) != "mine0\n" {
		t.Errorf("after a write over a link: %q", out.Data)
	}
}

func readConfined(t *testing.T, s suite) {
	box := s.box(t)
	shell(t, box, "trap", trap)
	// Without isolation it lies on the machine itself.
	defer shell(t, box, "clean", "rm -f /tmp/ship-sandboxtest-outside")
	for _, path := range append(outside, "/work/pipe", "/work/repo/..", "/work/home") {
		if data, err := box.ReadFrom(t.Context(), path, 0); err == nil {
			t.Errorf("ReadFrom(%q) was not refused and returned %q", path, data)
		}
	}
}

// port is one that the echo server listens on in the tests.
const port = 4321

func dial(t *testing.T, s suite) {
	box := s.box(t)
	p := spawn(t, box, sandbox.Command{Name: "echo", Args: s.Echo(port)})
	var conn net.Conn
	await(t, "the server listens", func() bool {
		var err error
		conn, err = box.Dial(t.Context(), port)
		if p, _ = box.Process(t.Context(), "echo"); !p.Running {
			t.Fatalf("the server ended: %+v, %s", p, readAll(t, box, p.Output))
		}
		return err == nil
	})
	defer func() { _ = conn.Close() }()
	sent := bytes.Repeat([]byte("all the way and back\n"), 10<<10)
	go func() {
		_, _ = conn.Write(sent)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("what came back differs: %v", err)
	}
	// The end of the stream travels both ways, too.
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func dialClosed(t *testing.T, s suite) {
	box := s.box(t)
	_, err := box.Dial(t.Context(), 4322)
	wantErr(t, "Dial", err, sandbox.ErrTransient)
	for _, port := range []int{0, -1, 65536} {
		if _, err := box.Dial(t.Context(), port); err == nil {
			t.Errorf("port %d was dialled", port)
		}
	}
}

// secondHandle: nothing that matters is kept in a handle or in a provider.
func secondHandle(t *testing.T, s suite) {
	info := s.create(t, spec(t))
	p := spawn(t, s.attach(t, info.ID), command("work", "echo hello; sleep 600"))
	other := suite{s.Factory, s.Open(t)}
	if again := other.create(t, spec(t)); again.ID != info.ID {
		t.Fatalf("another provider made box %s beside %s", again.ID, info.ID)
	}
	box := other.attach(t, info.ID)
	awaitText(t, box, p.Output, "hello\n")
	found, err := box.Process(t.Context(), "work")
	if err != nil || found.PID != p.PID || !found.Running || !found.Started.Equal(p.Started) {
		t.Errorf("another handle sees %+v, %v, want %+v", found, err, p)
	}
	if again := spawn(t, box, command("work", "exit 1")); again.PID != p.PID {
		t.Errorf("another handle started it again: %+v", again)
	}
	if err := box.Kill(t.Context(), "work", time.Second); err != nil {
		t.Errorf("Kill: %v", err)
	}
}
