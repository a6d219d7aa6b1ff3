package guest

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// spareThreads is how many threads the guest keeps ready, see warm.
const spareThreads = 16

// harden protects the guest from the processes that it will start, which run
// as the same user.
func harden() error {
	// Not dumpable: nobody may trace us or read our memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("closing the guest's memory: %w", err)
	}
	// Orphans come to us even where we are not the first process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopting orphans: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("switching core dumps off: %w", err)
	}
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping files from children: %w", err)
	}
	warm(spareThreads)
	return nil
}

// disown makes sure that what the calling thread starts next gains no
// privilege and inherits no keyring: those of the gateway are none of the
// box's business.
func disown() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up privileges: %w", err)
	}
	// Without a name it is a new one (keyctl(2)).
	_, _, errno := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	// A kernel or a filter without keyrings has nothing to inherit.
	if errno != 0 && errno != unix.ENOSYS && errno != unix.EPERM {
		return fmt.Errorf("leaving the session keyring: %w", errno)
	}
	return nil
}

// warm makes n threads and leaves them idle. A box whose processes have used
// up its process limit grants no further thread, and a Go program that cannot
// have the thread it wants dies; the guest must be the one that survives.
func warm(n int) {
	var running, done sync.WaitGroup
	release := make(chan struct{})
	running.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			running.Done()
			<-release
		})
	}
	running.Wait()
	close(release)
	done.Wait()
}
