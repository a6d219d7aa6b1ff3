package sandboxtest

import (
	"os/exec"
	"strings"
	"testing"
)

// WriteProgram writes a file that is executed afterwards. A process that another
// test is just starting has all files of ours open until its own program runs,
// and a program that anybody has open for writing cannot be executed ("text file
// busy"). So a process of its own writes it, whose files nobody else gets.
func WriteProgram(t testing.TB, path, text string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `cat > "$0" && chmod 755 "$0"`, path)
	cmd.Env = []string{"PATH=/usr/bin:/bin"} // a test may have set another
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("writing %s: %v: %s", path, err, out)
	}
}
