//go:build faults

package main

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ship/sandbox/e2b"
	"ship/session/turn"
)

// faultHook counts the points where a crash would be interesting, writes each
// to the file SHIP_TEST_POINTS, and kills this process with SIGKILL at the one
// whose number is SHIP_TEST_KILL_AT, or the nth time at the one that
// SHIP_TEST_KILL_ON names as NAME:n.
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
	killOn, nth, _ := strings.Cut(os.Getenv("SHIP_TEST_KILL_ON"), ":")
	left, _ := strconv.Atoi(nth)
	var mu sync.Mutex
	n := 0
	return func(point string) {
		mu.Lock()
		defer mu.Unlock()
		n++
		fmt.Fprintln(trace, point)
		if point == killOn {
			left--
		}
		if n == killAt || point == killOn && left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing of ours runs after it
		}
	}
}

// faultE2B leads to a stand-in for E2B on this machine, which has neither names
// nor certificates: SHIP_TEST_E2B is where its boxes are reached, and where they
// reach ship.
func faultE2B(c *e2b.Config) {
	if boxes, public, ok := strings.Cut(os.Getenv("SHIP_TEST_E2B"), " "); ok {
		c.SandboxURL, c.PublicURL = boxes, public
	}
}

// faultRounds holds boxes against sessions as often as SHIP_TEST_ROUNDS says, so
// that no test has to wait for minutes.
func faultRounds() turn.Rounds {
	d, _ := time.ParseDuration(os.Getenv("SHIP_TEST_ROUNDS"))
	return turn.Rounds{Every: d, Grace: d}
}
