package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// tally counts what was done to a world.
type tally struct {
	mu     sync.Mutex
	faults map[string]int // guarded by mu
	runs   int            // guarded by mu
	failed int            // guarded by mu
	strays int            // guarded by mu: boxes that were left behind and reaped
	states int            // guarded by mu: read by an earlier release
}

func newTally() *tally { return &tally{faults: map[string]int{}} }

func (y *tally) add(fault string, n int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.faults[fault] += n
}

// end counts a run. One that is given up, for a deadline passed, is as broken as
// one in which something does not hold.
func (y *tally) end(t *testing.T) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if t.Skipped() {
		return
	}
	y.runs++
	if t.Failed() {
		y.failed++
	}
}

func (y *tally) reaped(n int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.strays += n
}

func (y *tally) read() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.states++
}

func (y *tally) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	var parts []string
	sum := 0
	for _, name := range slices.Sorted(maps.Keys(y.faults)) {
		sum += y.faults[name]
		parts = append(parts, fmt.Sprintf("%s %d", name, y.faults[name]))
	}
	return fmt.Sprintf("%d runs, %d faults (%s), %d states read by an earlier release, %d broken",
		y.runs, sum, strings.Join(parts, ", "), y.states, y.failed)
}

// TestLab runs stories from seeds, and demands of each what no fault may break.
func TestLab(t *testing.T) {
	t.Parallel()
	from, n := number("SHIP_TEST_LAB_FROM", 1), number("SHIP_TEST_LAB_SEEDS", 2)
	began, sum := time.Now(), newTally()
	atOnce := make(chan struct{}, number("SHIP_TEST_LAB_AT_ONCE", 2))
	t.Run("seeds", func(t *testing.T) {
		for seed := from; seed < from+n; seed++ {
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				atOnce <- struct{}{}
				defer func() { <-atOnce }()
				experiment(t, int64(seed), sum)
			})
		}
	})
	fmt.Printf("lab: seeds %d to %d, %s, %s\n", from, from+n-1, sum, time.Since(began).Round(time.Second))
}

// number is a whole number from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// experiment is one run.
func experiment(t *testing.T, seed int64, sum *tally) {
	t.Cleanup(func() { sum.end(t) }) // the last of all
	l := newLab(t, labOptions{redis: []string{"--appendfsync", syncs(seed)}})
	l.tally = sum
	l.story = newStory(l, seed)
	saboteur := newSaboteur(l, seed)
	for _, g := range l.ships {
		g.up()
	}
	l.began = time.Now()
	l.story.begin()
	saboteur.run()
	l.heal()
	l.rest()
	l.judge()
	if t.Failed() {
		t.Log(l.dump())
	}
	for _, g := range l.ships {
		g.stop()
	}
	l.readBefore()
	if seed == 1 && !t.Failed() {
		l.bites()
	}
	t.Logf("seed %d took %s:\n%s\n%s", seed, time.Since(l.began).Round(time.Second), l.history(), l.story)
}

// syncs is how Redis keeps what it was told: on the disk before it answers, or,
// in every fourth run, once in a second, which a kill of Redis loses nothing of
// either.
func syncs(seed int64) string {
	if seed%4 == 3 {
		return "everysec"
	}
	return "always"
}
