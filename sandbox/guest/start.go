package guest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ship/sandbox"
)

// DefaultPath is PATH in a box whose guest was given none.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// mark is the variable by which all that a process has started can be found
// again, even after it has left the process's group and session.
const mark = "SHIP_PROCESS"

// start starts p. When it returns an error, no process is left.
func (ps *processes) start(p *process, cmd sandbox.Command) error {
	if len(cmd.Args) == 0 {
		return fmt.Errorf("starting %q: no program: %w", cmd.Name, fs.ErrInvalid)
	}
	plan, err := ps.plan(cmd)
	if err != nil {
		return fmt.Errorf("starting %q: %w", cmd.Name, err)
	}
	defer func() { _ = plan.at.Close() }()
	if err := ps.folder(cmd.Name); err != nil {
		return fmt.Errorf("starting %q: %w", cmd.Name, err)
	}
	if err := ps.launch(p, plan, cmd.Stdin); err != nil {
		return fmt.Errorf("starting %q: %w", cmd.Name, err)
	}
	_ = ps.note(p.name, "meta", about{PID: p.pid, Started: p.started, Args: cmd.Args, Dir: plan.dir})
	return nil
}

// plan is a command as the kernel needs it.
type plan struct {
	program, dir string
	// at is dir, held open: the name may lead elsewhere by the time it is entered.
	at        *os.File
	args, env []string
}

// plan opens the folder of a command, which the caller closes.
func (ps *processes) plan(cmd sandbox.Command) (plan, error) {
	dir, at, err := ps.enter(cmd.Dir)
	if err != nil {
		return plan{}, err
	}
	pl := plan{dir: ps.places.outside(dir), at: at, env: ps.env(cmd)}
	for _, arg := range cmd.Args {
		pl.args = append(pl.args, ps.places.outside(arg))
	}
	if pl.program, err = pl.lookPath(); err != nil {
		return plan{}, errors.Join(err, at.Close())
	}
	return pl, nil
}

// enter opens the folder in which a process starts, and names it.
func (ps *processes) enter(wanted string) (dir string, at *os.File, err error) {
	if wanted != "" {
		at, err = ps.files.folder(wanted)
		return wanted, at, err
	}
	if at, err = ps.files.folder(sandbox.RepoDir); err == nil {
		return sandbox.RepoDir, at, nil
	}
	at, err = ps.files.folder(sandbox.WorkDir)
	return sandbox.WorkDir, at, err
}

// here is the folder of a plan, for the process that is about to enter it. It has
// the same descriptors as we until its program runs; see proc_pid_fd(5).
func (pl plan) here() string { return "/proc/self/fd/" + strconv.Itoa(int(pl.at.Fd())) }

// env is the environment of a process. PATH is all that it has of the guest's;
// of two values for one name the later one counts.
func (ps *processes) env(cmd sandbox.Command) []string {
	env := []string{
		"PATH=" + cmp.Or(os.Getenv("PATH"), DefaultPath),
		"HOME=" + ps.places.outside(sandbox.HomeDir),
		"LANG=C.UTF-8",
		"TMPDIR=/tmp",
	}
	for _, entry := range cmd.Env {
		env = append(env, ps.places.outside(entry))
	}
	return lastOfEach(append(env, ps.mark(cmd.Name)))
}

func (ps *processes) mark(name string) string { return mark + "=" + ps.tag + "." + name }

func lastOfEach(env []string) []string {
	seen := make(map[string]bool)
	var kept []string
	for _, entry := range slices.Backward(env) {
		name, _, _ := strings.Cut(entry, "=")
		if !seen[name] {
			kept = append(kept, entry)
		}
		seen[name] = true
	}
	slices.Reverse(kept)
	return kept
}

// lookPath finds the program as execvp would, in the PATH that the process
// itself will have.
func (pl plan) lookPath() (string, error) {
	name := pl.args[0]
	if strings.Contains(name, "/") {
		if !path.IsAbs(name) {
			name = path.Join(pl.dir, name)
		}
		return name, executable(name)
	}
	for _, entry := range pl.env {
		list, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			if file := path.Join(dir, name); path.IsAbs(dir) && executable(file) == nil {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("program %q: %w", name, fs.ErrNotExist)
}

func executable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode().Perm()&0o111 == 0 {
		return &fs.PathError{Op: "exec", Path: file, Err: fs.ErrPermission}
	}
	return nil
}

// launch starts the process with its files, and lets it be watched.
func (ps *processes) launch(p *process, pl plan, input []byte) error {
	stdin, err := ps.stdin(p.name, input)
	if err != nil {
		return err
	}
	defer func() { _ = stdin.Close() }()
	file, err := ps.create(p.name, "output")
	if err != nil {
		return err
	}
	output, stdout, err := newOutput(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	p.output, p.started = output, time.Now().UTC()
	pid, status, err := ps.reaper.start(pl.program, pl.args, &syscall.ProcAttr{
		Dir:   pl.here(),
		Env:   pl.env,
		Files: []uintptr{stdin.Fd(), stdout.Fd(), stdout.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	_ = stdout.Close()
	go output.copy()
	if err != nil {
		return err
	}
	p.pid = pid
	sacrifice(pid)
	go ps.finish(p, status)
	return nil
}

// stdin holds what a process reads. Its file has no name any more by then.
func (ps *processes) stdin(name string, input []byte) (*os.File, error) {
	if len(input) == 0 {
		return os.Open(os.DevNull)
	}
	file, err := ps.create(name, "stdin")
	if err != nil {
		return nil, err
	}
	_, err = file.Write(input)
	_, seek := file.Seek(0, 0)
	if err := errors.Join(err, seek, ps.files.run.Remove(path.Join("proc", name, "stdin"))); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// sacrifice makes a process the one that the kernel ends when memory is out,
// rather than the guest. Where it may not, the kernel chooses.
func sacrifice(pid int) {
	name := "/proc/" + strconv.Itoa(pid) + "/oom_score_adj"
	_ = os.WriteFile(name, []byte("800"), 0)
}
