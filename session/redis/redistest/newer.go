package redistest

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// NewerEnv is the environment variable that names a redis-server, or a
// valkey-server, of version 7.2 or newer.
const NewerEnv = "SHIP_TEST_REDIS_NEWER"

// versionForm is in what a server says with --version.
var versionForm = regexp.MustCompile(`\bv=(\d+)\.(\d+)`)

// newer finds a server of version 7.2 or newer.
func newer(tb testing.TB) string {
	tb.Helper()
	for _, program := range []string{os.Getenv(NewerEnv), "redis-server", "valkey-server"} {
		if program == "" {
			continue
		}
		out, err := exec.Command(program, "--version").Output()
		if err == nil && isNewer(string(out)) {
			return program
		}
	}
	tb.Skipf("this shows what Redis 7.2 or newer can do: set %s to the path of one, or of a valkey-server", NewerEnv)
	return ""
}

func isNewer(said string) bool {
	m := versionForm.FindStringSubmatch(said)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return major > 7 || major == 7 && minor >= 2
}
