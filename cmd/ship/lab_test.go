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
	failed int            // guarded by mu
	strays int            // guarded by mu: boxes that were left behind and reaped
}

func newTally() *tally { return &tally{faults: map[string]int{}} }

func (y *tally) add(fault string, n int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.faults[fault] += n
}

func (y *tally) fail() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.failed++
}

func (y *tally) reaped(n int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.strays += n
}

func (y *tally) failures() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.failed
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
	return fmt.Sprintf("%d faults (%s)", sum, strings.Join(parts, ", "))
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
	fmt.Printf("lab: %d runs from the seeds %d to %d, %s, %d broken, %s\n", n, from, from+n-1, sum, sum.failures(), time.Since(began).Round(time.Second))
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
	l := newLab(t)
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
		sum.fail()
		t.Log(l.dump())
	}
	for _, g := range l.ships {
		g.stop()
	}
	t.Logf("seed %d took %s:\n%s\n%s", seed, time.Since(l.began).Round(time.Second), l.history(), l.story)
}
