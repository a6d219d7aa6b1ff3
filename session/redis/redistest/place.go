package redistest

import (
	"os"
	"syscall"
	"testing"
)

// LoadEnv is the environment variable under which loads are measured, and with
// them the disk.
const LoadEnv = "SHIP_TEST_LOAD"

// memoryPlace is where Linux has a file system in memory.
const memoryPlace = "/dev/shm"

// memoryRoom is how many bytes have to be free there. Containers have 64 MB
// unless told otherwise, and several packages may be tested at once.
const memoryRoom = 512 << 20

// makeDir makes the directory of a server. Where what is measured is the disk,
// it is on the disk. Everywhere else it may be in memory: the kernel keeps what a
// killed process has written in either place, and in memory a sync costs nothing.
// (It is not tb.TempDir: a socket's path may have only 107 bytes.)
func makeDir(tb testing.TB) (string, error) {
	if _, bench := tb.(*testing.B); !bench && os.Getenv(LoadEnv) == "" && free(memoryPlace) >= memoryRoom {
		if dir, err := os.MkdirTemp(memoryPlace, "ship"); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("/tmp", "ship")
}

// free is how many bytes there is room for; none where there is no such place.
func free(path string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
