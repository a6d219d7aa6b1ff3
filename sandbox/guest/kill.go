package guest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lookAgain is how often it is looked whether a group has gone. The kernel
// announces the end of a process, not of a group.
const lookAgain = 10 * time.Millisecond

// kill ends a process with all that it has started: SIGTERM, and SIGKILL after
// grace. It returns when they are gone, and may be called again.
func (ps *processes) kill(ctx context.Context, name string, grace time.Duration) error {
	p, err := ps.find(name)
	if err != nil {
		return err
	}
	prey := ps.prey(p)
	force := time.Now().Add(grace)
	if err := prey.signal(unix.SIGTERM); err != nil {
		return err
	}
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for prey.alive() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if time.Now().Before(force) {
			continue
		}
		// Again and again: it may start more than we found.
		if err := prey.signal(unix.SIGKILL); err != nil {
			return err
		}
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// prey is what a kill has to reach: a process group, and what carries the
// process's mark although it made a group of its own.
type prey struct {
	// group is zero when the process had ended before: then its number may
	// belong to somebody else by now, and only the mark counts.
	group int
	mark  []byte
}

func (ps *processes) prey(p *process) prey {
	found := prey{group: p.pid, mark: []byte(ps.mark(p.name))}
	select {
	case <-p.done:
		found.group = 0
	default:
	}
	return found
}

func (p prey) alive() bool { return len(p.members()) > 0 }

// signal reaches the group at once, so that none of it can run away, and then,
// one by one, those that left it.
func (p prey) signal(signal unix.Signal) error {
	for _, s := range p.members() {
		target := s.pid
		if p.group != 0 && s.group == p.group {
			target = -p.group
		}
		if err := unix.Kill(target, signal); err != nil && err != unix.ESRCH {
			return fmt.Errorf("signalling %d: %w", target, err)
		}
	}
	return nil
}

func (p prey) members() []stat {
	var found []stat
	for _, s := range running() {
		if p.group != 0 && (s.group == p.group || s.session == p.group) || marked(s.pid, p.mark) {
			found = append(found, s)
		}
	}
	return found
}

func marked(pid int, mark []byte) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(entry, mark) {
			return true
		}
	}
	return false
}

// stat is what /proc/PID/stat says of a process, as far as we need it
// (proc_pid_stat(5)).
type stat struct {
	pid, parent, group, session int
	state                       byte
}

// running are all living processes that we can see. One that has ended and was
// not waited for by its parent does not live.
func running() []stat {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []stat
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		if s, ok := parseStat(string(text)); ok && s.state != 'Z' && s.state != 'X' {
			all = append(all, s)
		}
	}
	return all
}

// parseStat reads one line of /proc/PID/stat. The program's name stands in
// brackets and may itself hold brackets and spaces.
func parseStat(line string) (stat, bool) {
	open, end := strings.Index(line, " ("), strings.LastIndex(line, ") ")
	if open < 0 || end < open {
		return stat{}, false
	}
	var s stat
	_, err := fmt.Sscanf(line[:open]+line[end+1:], "%d %c %d %d %d", &s.pid, &s.state, &s.parent, &s.group, &s.session)
	return s, err == nil
}

// endAll kills every process of the box, and returns when there is none.
func endAll() {
	for range 100 {
		victims := descendants(os.Getpid())
		if len(victims) == 0 {
			return
		}
		if os.Getpid() == 1 {
			_ = unix.Kill(-1, unix.SIGKILL)
			return // The kernel ends what is left together with us.
		}
		for _, pid := range victims {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		reapAll()
	}
}

// descendants are the living processes below root. Orphans among them are our
// own children, because we adopt them.
func descendants(root int) []int {
	below := map[int]bool{root: true}
	all := running()
	var pids []int
	for grown := true; grown; {
		grown = false
		for _, s := range all {
			if below[s.parent] && !below[s.pid] {
				below[s.pid], grown = true, true
				pids = append(pids, s.pid)
			}
		}
	}
	return pids
}

// reapAll waits for children that have just been killed.
func reapAll() {
	time.Sleep(lookAgain)
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 && err != unix.EINTR {
			return
		}
	}
}
