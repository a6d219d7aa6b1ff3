package opencode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox/agent"
	"ship/sandbox/agent/modeltest"
)

// TestReal is everything that needs a real OpenCode, on one server.
func TestReal(t *testing.T) {
	s := newStage(t)
	t.Run("together", func(t *testing.T) {
		t.Run("work", s.testWork)
		t.Run("once", s.testOnce)
		t.Run("steer", func(t *testing.T) { s.testSteer(t, "slow", "bash: until test -e slow.go") })
		t.Run("steer at the end", func(t *testing.T) { s.testSteer(t, "talks", "thinking") })
		t.Run("leave and come back", s.testLeave)
		t.Run("stop", s.testStop)
		t.Run("deadline", s.testDeadline)
		t.Run("subagent", s.testSubagent)
		for model, want := range map[string]agent.Ending{
			"same": agent.Stuck, "fails": agent.Stuck, "spent": agent.Spent, "denied": agent.Refused,
			"down": agent.Unreachable, "silent": agent.Unreachable, "mute": agent.Unreachable, "cut": agent.Unreachable,
		} {
			t.Run(model, func(t *testing.T) { s.testEnding(t, model, want) })
		}
	})
	t.Run("no secret in the settings", s.testNoSecret)
	t.Run("found again", s.testFoundAgain)
	t.Run("killed", s.testKilled)
}

func (s *stage) testWork(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []agent.Progress
	run := s.run("work")
	run.Progress = func(p agent.Progress) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, p)
	}
	res := s.supervise(t, run)
	if res.Ending != agent.Completed || res.Say != "" || !strings.HasPrefix(res.Answer, "I wrote hello.txt.") {
		t.Errorf("result %+v", res)
	}
	if s.repo.read("hello.txt") != "hello\n" {
		t.Error("the file was not written")
	}
	var tools []string
	for _, c := range res.Calls {
		tools = append(tools, c.Tool+" "+string(c.Status))
	}
	if diff := cmp.Diff([]string{"todowrite done", "write done", "bash done", "read done", "todowrite done"}, tools); diff != "" {
		t.Error(diff)
	}
	want := agent.Usage{Calls: 5, Input: 500, Output: 100, USD: 500*3e-6 + 100*15e-6}
	if diff := cmp.Diff(want, res.Usage, cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
	mu.Lock()
	defer mu.Unlock()
	last := told[len(told)-1]
	if diff := cmp.Diff([]agent.Todo{{Text: "greet", Status: "completed"}}, last.Todos); diff != "" {
		t.Error(diff)
	}
	for _, r := range s.model.Requests() {
		if r.Model == "work" && !strings.Contains(r.System, "Speak like a sailor") {
			t.Fatal("the model was not told what AGENTS.md says")
		}
	}
	if n := s.model.Tally("work"); n != (modeltest.Tally{Requests: 5, Distinct: 5, Starts: 1}) {
		t.Errorf("the model was asked %+v", n)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// testOnce sends the same prompt three times at the same time, and again after
// the turn.
func (s *stage) testOnce(t *testing.T) {
	t.Parallel()
	run := s.run("once")
	ctx := t.Context()
	id, err := s.agent.Open(ctx, run.Title)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.agent.Open(ctx, run.Title); again != id {
		t.Errorf("opened %s, then %s (%v)", id, again, err)
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if err := s.agent.Prompt(ctx, id, run.Prompt); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s.release(t, "once")
	if res := s.supervise(t, run); res.Ending != agent.Completed || len(res.Calls) != 1 {
		t.Errorf("result %+v", res)
	}
	if err := s.agent.Prompt(ctx, id, run.Prompt); err != nil {
		t.Error(err)
	}
	if n := s.model.Tally("once"); n != (modeltest.Tally{Requests: 2, Distinct: 2, Starts: 1}) {
		t.Errorf("the model was asked %+v", n)
	}
}

// testSteer says something more while the agent does what doing says: in the
// middle of a tool, and in the middle of what would have been its last answer.
func (s *stage) testSteer(t *testing.T, model, doing string) {
	t.Parallel()
	run := s.run(model)
	run.Title, run.Prompt.ID, run.Prompt.Text = "steer "+model, "steer "+model, "first"
	more := agent.Prompt{ID: "more " + model, Text: "then this for " + model, Model: run.Prompt.Model}
	said := false
	run.Progress = func(p agent.Progress) {
		if !said && strings.HasPrefix(p.Doing, doing) {
			said = true
			defer s.release(t, model)
			if err := s.agent.Prompt(t.Context(), p.Conversation, more); err != nil {
				t.Error(err)
			}
		}
	}
	res := s.supervise(t, run)
	if !said || res.Ending != agent.Completed || res.Cause != nil {
		t.Errorf("said %v, result %+v", said, res)
	}
	heard := 0
	for _, r := range s.model.Requests() {
		if strings.Contains(r.User, more.Text) {
			heard++
		}
	}
	if heard != 1 {
		t.Errorf("the model heard %d times what was said in between", heard)
	}
}

// testLeave cancels as a shutdown does, and supervises again as the next
// process does.
func (s *stage) testLeave(t *testing.T) {
	t.Parallel()
	run := s.run("left")
	run.Title, run.Prompt.ID, run.Prompt.Text = "leave", "leave", "leave me"
	s.leaveAtWork(t, run)
	s.release(t, "left")
	if res := s.supervise(t, run); res.Ending != agent.Completed || len(res.Calls) != 1 {
		t.Errorf("result %+v", res)
	}
	for _, r := range s.model.Requests() {
		if r.Step > 0 && strings.Contains(r.User, "leave me") {
			return
		}
	}
	t.Error("the turn did not go on")
}

// leaveAtWork follows a turn until the agent does something, and leaves it there.
func (s *stage) leaveAtWork(t *testing.T, run agent.Run) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	run.Progress = func(p agent.Progress) {
		if len(p.Steps) > 0 {
			cancel(errLeave)
		}
	}
	res, err := agent.Supervise(ctx, s.agent, run)
	if !errors.Is(err, errLeave) || res.Ending != "" {
		t.Fatalf("left with %+v, %v", res, err)
	}
}

func (s *stage) testStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	run := s.run("waits")
	run.Progress = func(p agent.Progress) {
		if strings.Contains(p.Doing, sleeper) {
			awaitSleeper(t, s.repo.box.root)
			cancel(errStop)
		}
	}
	res, err := agent.Supervise(ctx, s.agent, run)
	if err != nil || res.Ending != agent.Stopped || res.Say == "" {
		t.Errorf("stopped with %+v, %v", res, err)
	}
	if pids := sleepers(t, s.repo.box.root); len(pids) > 0 {
		t.Errorf("tools still run: %v", pids)
	}
}

func (s *stage) testDeadline(t *testing.T) {
	t.Parallel()
	run := s.run("varies")
	s.leaveAtWork(t, run)
	run.Limits.Deadline = time.Now().Add(2 * time.Second)
	if res := s.supervise(t, run); res.Ending != agent.TimedOut || res.Cause != nil || len(res.Calls) == 0 {
		t.Errorf("result %+v", res)
	}
	asked := s.model.Tally("varies").Requests
	snap, err := s.agent.Snapshot(t.Context(), mustOpen(t, s, run.Title), run.Prompt.ID)
	if err != nil || snap.Status.Phase != agent.Idle {
		t.Errorf("afterwards %+v, %v", snap.Status, err)
	}
	if now := s.model.Tally("varies").Requests; now != asked {
		t.Errorf("the loop went on: %d requests, then %d", asked, now)
	}
}

func mustOpen(t *testing.T, s *stage, title string) string {
	t.Helper()
	id, err := s.agent.Open(t.Context(), title)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *stage) testSubagent(t *testing.T) {
	t.Parallel()
	res := s.supervise(t, s.run("manager"))
	if res.Ending != agent.Completed || res.Usage.Calls != 4 || res.Usage.Input != 400 {
		t.Errorf("result %+v", res)
	}
}

func (s *stage) testEnding(t *testing.T, model string, want agent.Ending) {
	t.Parallel()
	res := s.supervise(t, s.run(model))
	if res.Ending != want || res.Say == "" {
		t.Errorf("ended %q (%s), want %q", res.Ending, res.Say, want)
	}
	if strings.Contains(res.Say, "k123") || strings.Contains(res.Say, "u:p") {
		t.Errorf("a secret is shown: %s", res.Say)
	}
}

func (s *stage) testNoSecret(t *testing.T) {
	var all map[string]any
	if err := s.agent.(*handle).client.Load().get(t.Context(), "/config", &all); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(all)
	if !strings.Contains(got, "apiKey:none") || strings.Contains(got, "steal") {
		t.Errorf("settings: %s", got)
	}
	for _, r := range s.model.Requests() {
		if r.Authorization != "Bearer none" {
			t.Fatalf("the model saw %q", r.Authorization)
		}
	}
}

// testFoundAgain starts as a restarted gateway does, and with a new model list.
func (s *stage) testFoundAgain(t *testing.T) {
	first := s.record(t)
	s.start(t)
	if again := s.record(t); again != first {
		t.Errorf("started anew: %+v, then %+v", first, again)
	}
	id := mustOpen(t, s, "turn with work")
	// Not every repository has one; the next server starts without.
	if err := os.Remove(filepath.Join(s.repo.dir, "AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	s.setup.Providers[0].Models[0].Context = 90_000
	s.start(t)
	if again := s.record(t); again == first {
		t.Error("new settings did not start a new server")
	}
	if after := mustOpen(t, s, "turn with work"); after != id {
		t.Error("the agent's memory is gone after a new start")
	}
}

func (s *stage) record(t *testing.T) record {
	t.Helper()
	srv, err := newServer(s.repo.box, s.setup, s.port)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := srv.recall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// testKilled ends the server in the middle of a tool. The turn goes on in a new
// one, and the tool of the old one does not live on.
func (s *stage) testKilled(t *testing.T) {
	run := s.run("waits")
	run.Title, run.Prompt.ID = "killed", "killed"
	killed := false
	run.Progress = func(p agent.Progress) {
		if killed || !strings.Contains(p.Doing, sleeper) {
			return
		}
		killed = true
		awaitSleeper(t, s.repo.box.root)
		proc, err := s.repo.box.Process(t.Context(), s.record(t).Process)
		if err != nil {
			t.Error(err)
		}
		if err := syscall.Kill(proc.PID, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	before := len(s.model.Requests())
	res := s.supervise(t, run)
	if !killed || res.Ending != agent.Completed || !strings.HasPrefix(res.Answer, "went on") {
		t.Errorf("result %+v", res)
	}
	if pids := sleepers(t, s.repo.box.root); len(pids) > 0 {
		t.Errorf("the old server's tools still run: %v", pids)
	}
	for _, r := range s.model.Requests()[before:] {
		if r.Step == 0 && strings.Contains(r.User, "interrupted") {
			t.Error("the turn began anew instead of going on")
		}
	}
}
