//go:build faults

package main

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// faultHook counts the points where a crash would be interesting, writes each
// to the file SHIP_TEST_POINTS, and kills this process with SIGKILL at the one
// whose number is SHIP_TEST_KILL_AT.
func faultHook(log *slog.Logger) func(string) {
	killAt, _ := strconv.Atoi(os.Getenv("SHIP_TEST_KILL_AT"))
	path := os.Getenv("SHIP_TEST_POINTS")
	if path == "" {
		path = os.DevNull
	}
	trace, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		log.Warn("points are not traced", "err", err)
	}
	var mu sync.Mutex
	n := 0
	return func(point string) {
		mu.Lock()
		defer mu.Unlock()
		n++
		fmt.Fprintln(trace, point)
		if n == killAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing of ours runs after it
		}
	}
}
