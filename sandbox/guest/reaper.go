package guest

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reaper waits for every child: those that we started, and the orphans that
// the kernel gives us because we are the box's first process.
type reaper struct {
	// mu is held while a child is started, so that it cannot be reaped before
	// it is known who wants its status.
	mu      sync.Mutex
	waiting map[int]chan<- unix.WaitStatus
}

func newReaper() *reaper {
	return &reaper{waiting: make(map[int]chan<- unix.WaitStatus)}
}

// start runs a program. The channel yields its status, once.
func (r *reaper) start(path string, args []string, attr *syscall.ProcAttr) (int, <-chan unix.WaitStatus, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := disown(); err != nil {
		return 0, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, args, attr)
	if err != nil {
		return 0, nil, err
	}
	status := make(chan unix.WaitStatus, 1)
	r.waiting[pid] = status
	return pid, status, nil
}

// run reaps until ctx is done.
func (r *reaper) run(ctx context.Context) error {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	defer signal.Stop(died)
	for {
		for r.reapOne() {
		}
		select {
		case <-ctx.Done():
			return nil
		case <-died:
		}
	}
}

// reapOne reports whether there was a child to reap.
func (r *reaper) reapOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var status unix.WaitStatus
	pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
	if err == unix.EINTR {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	if waiting, ok := r.waiting[pid]; ok {
		delete(r.waiting, pid)
		waiting <- status
	}
	return true
}
