package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTypingIsHidden on a terminal of our own: what is typed is read and not
// shown, and afterwards it is shown again.
func TestTypingIsHidden(t *testing.T) {
	t.Parallel()
	screen, keyboard := pseudoTerminal(t)
	if terminalOf(keyboard) == nil {
		t.Fatal("a terminal is not taken for one")
	}
	done, hidden := make(chan string, 1), make(chan struct{})
	go func() {
		show, err := hideTyping(keyboard)
		if err != nil {
			t.Error(err)
		}
		close(hidden)
		line, err := bufio.NewReader(keyboard).ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		show()
		done <- strings.TrimSpace(line)
	}()
	<-hidden
	if _, err := screen.WriteString("hunter2\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got != "hunter2" {
		t.Errorf("read %q", got)
	}
	if _, err := screen.WriteString("shown\n"); err != nil {
		t.Fatal(err)
	}
	if err := screen.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	for buf := make([]byte, 64); !strings.Contains(seen.String(), "shown"); {
		n, err := screen.Read(buf)
		if err != nil {
			t.Fatalf("after %q: %v", &seen, err)
		}
		seen.Write(buf[:n])
	}
	if strings.Contains(seen.String(), "hunter2") {
		t.Errorf("the screen shows %q", &seen)
	}
	if f, err := os.Open(os.DevNull); err != nil || terminalOf(f) != nil || terminalOf(strings.NewReader("")) != nil {
		t.Error("no terminal is taken for one")
	}
}

// pseudoTerminal returns both ends of a new terminal.
func pseudoTerminal(t *testing.T) (screen, keyboard *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("this machine has no terminals to give: %v", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	raw, err := screen.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	var ioctl error
	if err := raw.Control(func(fd uintptr) {
		if ioctl = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); ioctl == nil {
			number, ioctl = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); err != nil || ioctl != nil {
		t.Skipf("this machine has no terminals to give: %v, %v", err, ioctl)
	}
	keyboard, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no terminals to give: %v", err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	return screen, keyboard
}
