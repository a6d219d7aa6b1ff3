package guest_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"ship/sandbox/guest"
)

// shows reads what a terminal shows until it holds something.
func shows(t *testing.T, screen *bufio.Reader, want string) {
	t.Helper()
	var shown bytes.Buffer
	for !strings.Contains(shown.String(), want) {
		b, err := screen.ReadByte()
		if err != nil {
			t.Fatalf("%q does not come: %v after %q", want, err, shown.String())
		}
		shown.WriteByte(b)
	}
}

func terminal(t *testing.T, b *box) (*guest.Terminal, *bufio.Reader) {
	t.Helper()
	term, err := b.Terminal(t.Context(), "xterm", guest.Window{Rows: 11, Columns: 33})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Close() })
	return term, bufio.NewReader(term)
}

func typed(t *testing.T, w io.Writer, line string) {
	t.Helper()
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// TestTerminal: what runs there has a terminal, of the client's size and kind,
// and its end is told with its code.
func TestTerminal(t *testing.T) {
	t.Parallel()
	term, screen := terminal(t, start(t))
	typed(t, term, `test -t 0 && echo is"-a-"$TERM; stty size`)
	shows(t, screen, "is-a-xterm")
	shows(t, screen, "11 33")
	if err := term.Resize(guest.Window{Rows: 22, Columns: 44}); err != nil {
		t.Fatal(err)
	}
	typed(t, term, "stty size")
	shows(t, screen, "22 44")
	typed(t, term, "echo secret=$SECRET.")
	shows(t, screen, "secret=.")
	typed(t, term, "sleep 1000")
	typed(t, term, "\x03") // as Ctrl-C does
	typed(t, term, "exit 7")
	if _, err := io.Copy(io.Discard, screen); err != nil || term.ExitCode() != 7 {
		t.Errorf("exit code %d, %v", term.ExitCode(), err)
	}
}

// TestATerminalEndsWithItsClient, and so does what was started there, though it
// does not care for SIGHUP.
func TestATerminalEndsWithItsClient(t *testing.T) {
	t.Parallel()
	b := start(t)
	term, screen := terminal(t, b)
	typed(t, term, "(trap '' HUP TERM; exec sleep 1000) & echo pid=$!=")
	shows(t, screen, "pid=")
	pid, err := screen.ReadString('=')
	for ; err == nil && strings.Contains(pid, "$"); pid, err = screen.ReadString('=') { // the echo of what was typed
		shows(t, screen, "pid=")
	}
	if err != nil {
		t.Fatal(err)
	}
	pid = strings.TrimSuffix(pid, "=")
	if _, err := os.Stat("/proc/" + pid); err != nil {
		t.Fatalf("before: %v", err)
	}
	_ = term.Close()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %s lives on", pid)
		}
	}
}

// TestATerminalEndsWithTheBox says so.
func TestATerminalEndsWithTheBox(t *testing.T) {
	t.Parallel()
	b := start(t)
	term, screen := terminal(t, b)
	typed(t, term, "echo rea''dy")
	shows(t, screen, "ready")
	_ = b.cmd.Process.Kill()
	if _, err := io.Copy(io.Discard, screen); err == nil || term.ExitCode() != -1 {
		t.Errorf("%v, exit code %d", err, term.ExitCode())
	}
}
