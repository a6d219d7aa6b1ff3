package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Machines do not agree on the time. Nothing can be told what time it is from
// outside of a process, so the ship whose clock is wrong is built with a time
// package in which time.Now is off by as many seconds as SHIP_TEST_CLOCK says:
// all of it, with what it uses, lives at that time.

// skewed is the program whose clock can be wrong, built once. It takes minutes
// the first time, as nothing of the standard library is there yet for it.
var skewed struct {
	once sync.Once
	err  error
}

const (
	clockWas = "sec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	clockIs  = "sec, nsec, mono := runtimeNow()\n\tsec += offset\n\tif mono == 0 {"
	// clockOffset is in seconds, with a sign or without.
	clockOffset = `
var offset = func() (n int64) {
	text, _ := syscall.Getenv("SHIP_TEST_CLOCK")
	sign := int64(1)
	for _, c := range []byte(text) {
		if c == '-' {
			sign = -1
			continue
		}
		n = n*10 + int64(c-'0')
	}
	return sign * n
}()
`
)

// skewedProgram is the program under test with a clock that can be set.
func skewedProgram(t testing.TB) string {
	t.Helper()
	path := program(t) + "-skewed"
	skewed.once.Do(func() { skewed.err = buildSkewed(filepath.Dir(path), path) })
	if skewed.err != nil {
		t.Fatal(skewed.err)
	}
	return path
}

func buildSkewed(dir, path string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find the standard library: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	changed := strings.Replace(string(text), clockWas, clockIs, 1)
	changed = strings.Replace(changed, "import (", "import (\n\t\"syscall\"", 1)
	if changed == string(text) || !strings.Contains(changed, clockIs) {
		return fmt.Errorf("%s is not as this test knows it: see how Now begins", source)
	}
	mine, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	table, err := json.Marshal(map[string]map[string]string{"Replace": {source: mine}})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{mine: []byte(changed + clockOffset), overlay: table} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return err
		}
	}
	cmd := exec.Command("go", "build", "-tags", "faults", "-overlay", overlay, "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build with another clock: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
