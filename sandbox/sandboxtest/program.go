package sandboxtest

import (
	"os"
	"syscall"
	"testing"
)

// WriteProgram writes a file that is executed afterwards. A process that another
// test is just starting has all files of ours open until its own program runs,
// and a program that anybody has open for writing cannot be executed ("text file
// busy"). So nothing may be started meanwhile.
func WriteProgram(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
