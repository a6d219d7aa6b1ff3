package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ship/sandbox"
	"ship/sandbox/chaos"
	"ship/sandbox/local"
)

// commitWork commits what the fake agent did, and names the commit.
func commitWork(line string) string {
	script := `git add -A && git commit -qm "$1" && git rev-parse HEAD`
	out, err := exec.Command("sh", "-c", script, "sh", line).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("no commit: %v: %s", err, out)
	}
	return "made commit-" + strings.TrimSpace(string(out))
}

// madeCommit finds the commits that the agent named.
var madeCommit = regexp.MustCompile(`made commit-([0-9a-f]{40})`)

const (
	// chaosSessions is how many sessions one ship has at once.
	chaosSessions = 3
	// chaosRetries is how often a person asks again for what failed.
	chaosRetries = 3
)

// chaosTally sums up all runs.
type chaosTally struct {
	mu     sync.Mutex
	faults map[string]int
	// turns that were asked for, and how often a person had to ask again.
	turns, retries atomic.Int64
	// well is how many runs ended as they have to.
	well atomic.Int64
}

// chaosRun is the story of one seed: several people ask at once for something on
// an issue each, and once the boxes rest for something more.
type chaosRun struct {
	*rig
	seed   int
	issues []int
	tally  *chaosTally
}

// TestChaos: whatever becomes of the boxes, every turn ends with a settled check
// and an answer, what the agent was said to have done is on the branch, and no
// box is left. SHIP_TEST_CHAOS_SEEDS says how many seeds, SHIP_TEST_CHAOS_FROM
// which is the first, and SHIP_TEST_CHAOS_AT_ONCE how many are played at a time.
func TestChaos(t *testing.T) {
	t.Parallel()
	seeds, from := setNumber(t, "SHIP_TEST_CHAOS_SEEDS", 2), setNumber(t, "SHIP_TEST_CHAOS_FROM", 1)
	tally := &chaosTally{faults: map[string]int{}}
	began := time.Now()
	places := make(chan struct{}, setNumber(t, "SHIP_TEST_CHAOS_AT_ONCE", 4))
	t.Run("seeds", func(t *testing.T) {
		for seed := from; seed < from+seeds; seed++ {
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				places <- struct{}{}
				defer func() { <-places }()
				newChaosRun(t, seed, tally).play(t)
			})
		}
	})
	t.Logf("chaos: %s", tally.summary(seeds, time.Since(began)))
}

func setNumber(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: a positive number is wanted", name, text)
	}
	return n
}

func newChaosRun(t *testing.T, seed int, tally *chaosTally) *chaosRun {
	r := newRig(t, rigOptions{more: "sandbox: {chaos: true, max: 4, idle_pause: 10s, idle_destroy: 1m}\n"})
	r.args = []string{fmt.Sprintf("--chaos=%d", seed)}
	c := &chaosRun{rig: r, seed: seed, tally: tally, issues: []int{r.issue}}
	for len(c.issues) < chaosSessions {
		c.issues = append(c.issues, r.host.CreateIssue(rigRepo, "mona", fmt.Sprintf("Widget %d is broken", len(c.issues)), ""))
	}
	return c
}

func (c *chaosRun) play(t *testing.T) {
	c.start()
	c.ask("turn")
	c.await("the boxes to rest", patience, c.resting)
	c.ask("oil")
	c.checkBranches(t)
	c.checkChecks(t)
	for _, pr := range c.host.PullRequests(rigRepo) {
		c.deliver(c.host.PullClosed(rigRepo, pr.Number, "mona", true))
	}
	c.await("the boxes to go", patience, func() bool { return len(c.boxes()) == 0 })
	if pids := boxProcesses(c.dir); len(pids) > 0 {
		t.Errorf("seed %d: processes of boxes are left: %v", c.seed, pids)
	}
	c.stop()
	c.count(t)
	if !t.Failed() {
		c.tally.well.Add(1)
	}
}

// ask asks for the like in every thread, and waits until it is done. What failed
// is asked for again, as the answer says that one may.
func (c *chaosRun) ask(what string) {
	c.t.Helper()
	open := slices.Clone(c.issues)
	c.tally.turns.Add(int64(len(open)))
	for try := 0; len(open) > 0; try++ {
		before := c.turns()
		for _, n := range open {
			text := "retry"
			if try == 0 {
				text = chaosWork(what, n)
			}
			c.deliver(c.says(n, "/ship "+text))
		}
		c.endedTurns(before+len(open), 2*patience)
		open = slices.DeleteFunc(open, c.succeeded)
		c.tally.retries.Add(int64(len(open)))
		if try == chaosRetries && len(open) > 0 {
			c.t.Fatalf("%d tries were not enough for %v; the world:\n%s", try, open, c.host.World())
		}
	}
	c.checkCommits()
}

// chaosWork is another work for each issue: of the same, done within the same
// second, git would make the same commit.
func chaosWork(what string, issue int) string { return fmt.Sprintf("%s widget %d COMMIT", what, issue) }

// succeeded: the thread's status says so. If it does not, it names the remedy.
func (c *chaosRun) succeeded(issue int) bool {
	c.t.Helper()
	text := c.sticky(issue)
	if strings.Contains(text, "### ✅") {
		return true
	}
	if !strings.Contains(text, "/ship retry") {
		c.t.Errorf("#%d failed, and nobody is told what to do:\n%s", issue, text)
	}
	c.t.Logf("seed %d, #%d: %s\n%s", c.seed, issue, text, c.troubles(issue))
	return false
}

// troubles are what ship said of one session and its box, in one line each.
func (c *chaosRun) troubles(issue int) string {
	var lines []string
	for line := range strings.Lines(c.log.String()) {
		var said struct{ Session, Box, Msg, Kind, Fault, Reason, Err string }
		if json.Unmarshal([]byte(line), &said) == nil && strings.HasSuffix(said.Session, fmt.Sprintf(".%d", issue)) {
			lines = append(lines, strings.Join([]string{said.Msg, said.Box, said.Kind, said.Fault, said.Reason, said.Err}, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// resting: every box is paused, or gone.
func (c *chaosRun) resting() bool {
	p, err := local.New(local.Config{Dir: filepath.Join(c.dir, "data", "boxes"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.t.Fatal(err)
	}
	all, err := p.List(context.Background(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return !slices.ContainsFunc(all, func(b sandbox.Info) bool { return b.State != sandbox.Paused })
}

// checkBranches: each thread has one status and one pull request, which has the
// work of both prompts.
func (c *chaosRun) checkBranches(t *testing.T) {
	t.Helper()
	prs := c.host.PullRequests(rigRepo)
	if len(prs) != len(c.issues) {
		t.Errorf("%d pull requests for %d issues", len(prs), len(c.issues))
	}
	work := ""
	for _, pr := range prs {
		text, _ := c.host.File(rigRepo, pr.Head, "WORK.md")
		work += text + "\n"
	}
	for _, n := range c.issues {
		for _, what := range []string{"turn", "oil"} {
			if want := chaosWork(what, n); !strings.Contains(work, want+"\n") {
				t.Errorf("seed %d: %q is on no branch:\n%s", c.seed, want, work)
			}
		}
		if got := c.said(n, "<!-- ship:session="); got != 1 {
			t.Errorf("seed %d: #%d has %d status comments", c.seed, n, got)
		}
	}
}

// checkCommits: every commit that an answer names is on a branch.
func (c *chaosRun) checkCommits() {
	c.t.Helper()
	for _, n := range c.issues {
		made := madeCommit.FindAllStringSubmatch(c.sticky(n), -1)
		if len(made) == 0 {
			c.t.Errorf("seed %d: the answer in #%d names no commit:\n%s", c.seed, n, c.sticky(n))
		}
		for _, m := range made {
			if !c.holds(m[1]) {
				c.t.Errorf("seed %d: commit %s of #%d is on no branch", c.seed, m[1], n)
			}
		}
	}
}

// holds tells whether a commit is on a branch of the remote.
func (c *chaosRun) holds(commit string) bool {
	for branch := range c.host.Branches(rigRepo) {
		if c.host.Contains(rigRepo, branch, commit) {
			return true
		}
	}
	return false
}

// checkChecks: each commit has one check run at most, settled, and that of each
// pull request's head says success.
func (c *chaosRun) checkChecks(t *testing.T) {
	t.Helper()
	good := map[string]bool{}
	for _, k := range c.host.Checks(rigRepo, "") {
		if _, twice := good[k.SHA]; twice || k.Status != "completed" {
			t.Errorf("seed %d: a check run, twice: %t: %+v", c.seed, twice, k)
		}
		good[k.SHA] = k.Conclusion == "success"
	}
	for _, pr := range c.host.PullRequests(rigRepo) {
		if !good[pr.HeadSHA] {
			t.Errorf("seed %d: no check says success of %s: %v", c.seed, pr.HeadSHA, good)
		}
	}
}

// count reads what ship says at its end.
func (c *chaosRun) count(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(c.log.String()) {
		if !strings.Contains(line, `"msg":"boxes were made to fail"`) {
			continue
		}
		var counts map[string]any
		if err := json.Unmarshal([]byte(line), &counts); err != nil {
			t.Fatal(err)
		}
		c.tally.struck(counts)
		return
	}
	t.Errorf("seed %d: ship does not say which faults there were", c.seed)
}

func (y *chaosTally) struck(counts map[string]any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, f := range chaos.Kinds() {
		n, _ := counts[string(f)].(float64)
		y.faults[string(f)] += int(n)
	}
}

func (y *chaosTally) summary(seeds int, took time.Duration) string {
	y.mu.Lock()
	defer y.mu.Unlock()
	var kinds []string
	sum := 0
	for _, f := range slices.Sorted(maps.Keys(y.faults)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", f, y.faults[f]))
		sum += y.faults[f]
	}
	return fmt.Sprintf("%d of %d runs ended well: %d sessions, %d turns, %d faults (%s), %d times a person had to say retry, %s",
		y.well.Load(), seeds, seeds*chaosSessions, y.turns.Load(), sum, strings.Join(kinds, ", "), y.retries.Load(), took.Round(time.Second))
}

// TestChaosIsRefused: nobody has it by mistake.
func TestChaosIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag    string
		allowed bool
		want    string
	}{
		{"", false, ""},
		{"7", true, ""},
		{anySeed, true, ""},
		{"7", false, "sandbox.chaos"},
		{"seven", true, "has to be a number"},
	} {
		d, err := newDisturbance(c.flag, SandboxSettings{Chaos: c.allowed}, prometheus.NewRegistry())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("--chaos=%s, allowed %t: %v, want %q", c.flag, c.allowed, err, c.want)
		}
		if err == nil && (d == nil) != (c.flag == "") {
			t.Errorf("--chaos=%s gave %v", c.flag, d)
		}
	}
}
