package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// identity is a process that cannot be mistaken for another one that later got
// the same number.
type identity struct {
	PID int `json:"pid"`
	// Start is when it started, in clock ticks since the boot named Boot.
	Start uint64 `json:"start"`
	Boot  string `json:"boot"`
}

// identify returns the identity of a living process.
func identify(pid int) (identity, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return identity{}, fmt.Errorf("identifying process %d: %w", pid, err)
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return identity{}, fmt.Errorf("identifying process %d: %w", pid, err)
	}
	state, start, ok := parseStat(string(text))
	if !ok || state == "Z" || state == "X" {
		return identity{}, fmt.Errorf("process %d has ended", pid)
	}
	return identity{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, nil
}

// parseStat returns fields 3 and 22 of /proc/PID/stat (proc_pid_stat(5)). Field
// 2 is the program's name in brackets, which may itself hold brackets.
func parseStat(line string) (state string, start uint64, ok bool) {
	_, rest, ok := cutLast(line, ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", 0, false
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return fields[0], start, err == nil
}

func cutLast(text, sep string) (before, after string, found bool) {
	at := strings.LastIndex(text, sep)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(sep):], true
}

func (i identity) alive() bool {
	now, err := identify(i.PID)
	return err == nil && now == i
}

// How long a guest may take to end its box when it is asked to, and how long
// the kernel may take when the guest is not asked.
const (
	endPatience  = 5 * time.Second
	killPatience = 30 * time.Second
)

// end ends a guest, and with it its box. It asks first: without namespaces only
// the guest knows all that it has started. A process that is gone: nil.
func (i identity) end(ctx context.Context) error {
	gone, err := i.signal(ctx, unix.SIGTERM, endPatience)
	if err == nil && !gone {
		gone, err = i.signal(ctx, unix.SIGKILL, killPatience)
	}
	if err == nil && !gone {
		err = fmt.Errorf("process %d does not end", i.PID)
	}
	return err
}

// signal sends a signal to exactly this process and waits at most patience for
// its end. It reports whether the process has gone.
func (i identity) signal(ctx context.Context, signal unix.Signal, patience time.Duration) (gone bool, err error) {
	fd, err := unix.PidfdOpen(i.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening process %d: %w", i.PID, err)
	}
	defer func() { _ = unix.Close(fd) }()
	// The descriptor stays with the process that it was opened for; this tells
	// whether that is ours.
	if !i.alive() {
		return true, nil
	}
	err = unix.PidfdSendSignal(fd, signal, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("signalling process %d: %w", i.PID, err)
	}
	return awaitEnd(ctx, fd, patience)
}

// awaitEnd waits until the process behind fd has ended. The first process of a
// namespace ends only after all others in it.
func awaitEnd(ctx context.Context, fd int, patience time.Duration) (gone bool, err error) {
	const slice = 50 * time.Millisecond
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(slice.Milliseconds()))
		if n > 0 {
			return true, nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, fmt.Errorf("waiting for its end: %w", err)
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
	}
	return false, nil
}
