package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"
)

// loadEnv makes the tests of load as large as the promises are; without it they
// are a small form that shows that they work.
const loadEnv = "SHIP_TEST_LOAD"

// size chooses between the small and the large form of a test.
func size(small, large int) int {
	if alone() {
		return large
	}
	return small
}

// loaded begins a test of load. The large ones want the machine for themselves,
// so they run one after the other.
func loaded(t *testing.T) {
	t.Helper()
	if !alone() {
		t.Parallel()
	}
}

// alone: nothing else uses this machine, so times and memory mean something.
// Otherwise only what ship does is judged.
func alone() bool { return os.Getenv(loadEnv) != "" }

// sample are durations of one kind.
type sample struct {
	mu  sync.Mutex
	all []time.Duration
}

func (s *sample) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

func (s *sample) sorted() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.all))
}

// at is the quantile q, from 0 to 1, of what was measured; zero: nothing was.
func (s *sample) at(q float64) time.Duration {
	all := s.sorted()
	if len(all) == 0 {
		return 0
	}
	return all[int(q*float64(len(all)-1))]
}

func (s *sample) worst() time.Duration { return s.at(1) }

func (s *sample) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("p50 %s, p99 %s, worst %s of %d", round(s.at(.5)), round(s.at(.99)), round(s.worst()), len(s.sorted()))
}

// pulse asks an address again and again, whether it has answered before or not.
type pulse struct {
	url    string
	took   sample
	client http.Client
	mu     sync.Mutex
	failed []error
}

// pulseEvery is how often it asks.
const pulseEvery = 20 * time.Millisecond

func newPulse(url string) *pulse {
	return &pulse{url: url, client: http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

func (p *pulse) ask() {
	began := time.Now()
	response, err := p.client.Get(p.url)
	if err == nil {
		err = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("it answered %s", response.Status)
		}
	}
	p.took.add(time.Since(began))
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failed = append(p.failed, err)
	}
}

// faults are the answers that were none.
func (p *pulse) faults() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// feel asks all of them at the same moments until stop is called, which waits
// for the last answers. What slows down the machine, or this process, is seen in
// all of them.
func feel(all ...*pulse) (stop func()) {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(pulseEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				for _, p := range all {
					wg.Go(p.ask)
				}
			}
		}
	})
	return func() {
		close(quit)
		wg.Wait()
		for _, p := range all {
			p.client.CloseIdleConnections()
		}
	}
}

// bareEnv makes TestBare the process that it describes: an address to listen on.
const bareEnv = "SHIP_TEST_BARE"

// TestBare is a server that does nothing with what it is sent, in a process of
// its own: what ship is measured beside.
func TestBare(t *testing.T) {
	addr := os.Getenv(bareEnv)
	if addr == "" {
		t.Skip("runs only as the child of a test of load")
	}
	t.Fatal(http.ListenAndServe(addr, bareHandler()))
}

// startBare runs the bare server until the test ends, and returns its address.
func startBare(t *testing.T) string {
	t.Helper()
	addr := freeAddr(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestBare$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), bareEnv+"="+addr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // "signal: killed" is what is asked for
	})
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			return addr
		}
	}
	t.Fatal("the bare server does not come up")
	return ""
}

// report is a line of a test of load that stands for it: what `make load` shows.
func report(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("LOAD "+format, args...)
}

func TestSample(t *testing.T) {
	t.Parallel()
	var s sample
	if s.at(.5) != 0 {
		t.Error("something was measured")
	}
	for i := range 101 {
		s.add(time.Duration(100-i) * time.Second)
	}
	if s.at(.5) != 50*time.Second || s.at(.99) != 99*time.Second || s.worst() != 100*time.Second {
		t.Error(&s)
	}
}
