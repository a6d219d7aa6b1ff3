package turn

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox"
	"ship/sandbox/broker"
	"ship/session"
)

const wip = "refs/ship/wip/gh.1.7"

// saves makes a checkpoint of what is on the desk.
func (d *desk) saves(last snapshot) (snapshot, error) {
	d.t.Helper()
	r := *d.repository
	r.index = indexPath
	now, err := r.snapshot(d.t.Context(), last, d.start)
	if err != nil || now == last {
		return now, err
	}
	if err := r.inspect(d.t.Context(), now.commit); err != nil {
		return now, err
	}
	_, err = r.git(d.t.Context(), "", "push", "-q", "--force", "origin", now.commit+":"+wip)
	return now, err
}

func (d *desk) mustSave(last snapshot) snapshot {
	d.t.Helper()
	now, err := d.saves(last)
	if err != nil {
		d.t.Fatal(err)
	}
	return now
}

// another is a fresh box of the same session, at the same remote.
func (d *desk) another() *desk {
	d.t.Helper()
	dir := d.t.TempDir()
	r := *d.repository
	r.box = &folder{dir: dir, outs: map[string][]byte{}}
	next := &desk{repository: &r, t: d.t, remote: d.remote}
	d.sh(dir, "git init -q repo")
	next.agent("git config remote.origin.url 'ext::git %s " + d.remote + "' && git config protocol.ext.allow always && git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'")
	there, err := r.fetch(d.t.Context())
	if err == nil {
		err = r.enter(d.t.Context(), true, there)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	next.begin()
	return next
}

const someWork = `echo two > b && git add b && git commit -q -m two && echo three > b &&
	mkdir new && echo four > new/d && git rm -q --cached a && rm a && echo staged > e && git add e && echo no > ignored && echo ignored > .gitignore`

func TestACheckpointLeavesTheAgentAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent(someWork)
	const look = "git status --porcelain && git rev-parse HEAD && git diff --cached && cat .git/index | cksum && find . -path ./.git -prune -o -type f -print | sort | xargs cksum"
	before := d.agent(look)
	first := d.mustSave(snapshot{})
	if diff := cmp.Diff(before, d.agent(look)); diff != "" {
		t.Errorf("the agent finds (-before +after):\n%s", diff)
	}
	if first.commit == "" {
		t.Fatal("nothing was saved")
	}
	if again := d.mustSave(first); again != first {
		t.Errorf("nothing is new, and yet %+v is saved, first %+v", again, first)
	}
	d.agent("echo five > b")
	if again := d.mustSave(first); again == first || d.sh(d.remote, "git show "+wip+":b") != "five" {
		t.Errorf("saved %+v", again)
	}
}

func TestNothingIsSavedOfNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if now := d.mustSave(snapshot{}); now != (snapshot{}) {
		t.Errorf("saved %+v", now)
	}
}

func TestALostBoxIsRebuiltFromItsCheckpoint(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent(someWork)
	d.mustSave(snapshot{})
	next := d.another()
	saved, err := next.recover(t.Context(), wip)
	if err != nil || time.Since(saved).Abs() > time.Minute {
		t.Fatalf("saved at %s, %v", saved, err)
	}
	const look = "git add -A && git status --porcelain && cat b e new/d .gitignore && git log --format=%s && git symbolic-ref HEAD"
	if diff := cmp.Diff(d.agent(look), next.agent(look)); diff != "" {
		t.Errorf("what was there, and is now (-was +is):\n%s", diff)
	}
	if p := next.mustPublish(); !p.Changed || next.pushed("b") != "three" || next.pushed("a") != "nothing" {
		t.Errorf("published %+v", p)
	}
}

func TestACheckpointThatIsNotWanted(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(d *desk){
		"there is none":           func(d *desk) { d.sh(d.remote, "git update-ref -d "+wip) },
		"it is on the branch":     func(d *desk) { d.mustPublish() },
		"it is of another branch": func(d *desk) { d.branch = "ship/another" },
		"the branch has moved on": func(d *desk) {
			d.agent("git reset -q --hard HEAD~1 && git push -q origin HEAD:refs/heads/" + d.branch + " && echo x > x && git add x && git commit -q -m x && git push -q origin HEAD:refs/heads/" + d.branch)
		},
		"it was made by somebody": func(d *desk) { d.agent("git push -q -f origin HEAD:" + wip) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.agent(someWork)
			d.mustSave(snapshot{})
			then(d)
			next := d.another()
			before := next.agent("git status --porcelain && git rev-parse HEAD")
			saved, err := next.recover(t.Context(), wip)
			if err != nil || !saved.IsZero() {
				t.Errorf("recovered from %s, %v", saved, err)
			}
			if diff := cmp.Diff(before, next.agent("git status --porcelain && git rev-parse HEAD")); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotPushedIsNotSavedEither(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.secrets = []string{"hunter2hunter2"}
	d.bounds.file = 1000
	d.agent("head -c 2000 /dev/zero > large && echo small > b")
	first := d.mustSave(snapshot{})
	if files := d.sh(d.remote, "git ls-tree --name-only "+wip); files != "a\nb" {
		t.Errorf("saved %q", files)
	}
	d.agent("echo the password is hunter2hunter2 > c")
	if _, err := d.saves(first); !errors.Is(err, errSecret) {
		t.Errorf("saved with %v", err)
	}
	d.bounds.strays = 1
	if _, err := d.saves(first); !errors.Is(err, errStrays) {
		t.Errorf("saved with %v", err)
	}
}

// TestPublishingRemovesTheCheckpoint, and makes one of what it cannot push.
func TestPublishingRemovesTheCheckpoint(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent("echo two > b")
	d.mustSave(snapshot{})
	_, w, job := newYard(t, d)
	if _, err := w.Perform(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if refs := d.sh(d.remote, "git for-each-ref refs/ship"); refs != "" {
		t.Errorf("left: %s", refs)
	}
	d.begin()
	other := t.TempDir()
	d.sh(other, "git clone -q -b "+d.branch+" "+d.remote+" . && echo theirs > b && git commit -q -am theirs && git push -q origin HEAD")
	d.agent("echo three > b")
	if _, err := w.Perform(t.Context(), job); err == nil {
		t.Fatal("somebody's work was overwritten")
	}
	if saved := d.sh(d.remote, "git show "+wip+":b"); saved != "three" {
		t.Errorf("saved %q", saved)
	}
}

// TestOnlyTheMomentOfAPushMayPush: an agent that could always would not need
// ship's checks.
func TestOnlyTheMomentOfAPushMayPush(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent("echo two > b")
	_, w, job := newYard(t, d)
	job.State.Turn.Stage = session.Running
	box := &keyring{folder: d.box.(*folder)}
	s := newSaver(w, job, box)
	s.repo.box = box
	s.try(t.Context())
	if s.last.commit == "" || len(box.tokens) != 2 {
		t.Fatalf("saved %+v with %d tokens", s.last, len(box.tokens))
	}
	for i, want := range []string{wip, ""} {
		g, err := box.verify(box.tokens[i])
		if err != nil || g != want {
			t.Errorf("token %d may push to %q, %v, want %q", i, g, err, want)
		}
	}
}

// keyring keeps the tokens that a box was given.
type keyring struct {
	*folder
	tokens []string
}

func (k *keyring) Write(_ context.Context, path string, data []byte, _ fs.FileMode) error {
	if path == sandbox.TokenPath {
		k.tokens = append(k.tokens, string(data))
	}
	return nil
}

// verify returns what a token may push to.
func (k *keyring) verify(token string) (string, error) {
	signer, err := broker.NewSigner(make([]byte, broker.KeySize))
	if err != nil {
		return "", err
	}
	g, err := signer.Verify(token, time.Now())
	return g.Push, err
}

// TestAnAgentHearsWhatItHadDone in the box that was lost, and only then.
func TestAnAgentHearsWhatItHadDone(t *testing.T) {
	t.Parallel()
	s := session.State{Turn: &session.Turn{
		N: 1, Fresh: true, Prepares: 2, Saved: time.Date(2026, 1, 2, 14, 3, 0, 0, time.UTC),
		Progress: session.Progress{
			Todos: []session.Todo{{Text: "Oil them", Status: "completed"}, {Text: "Turn </quoted> them", Status: "in_progress"}},
			Steps: []string{"✓ go test ./..."},
		},
	}}
	r := session.Request{Verb: session.Instruct, Text: "fix the widgets"}
	text := prompt(s, r, true)
	for _, want := range []string{"was lost", "14:03 UTC", "- Oil them (completed)", "(in progress)", "✓ go test", "fix the widgets"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if strings.Count(text, "</quoted>") != 1 {
		t.Errorf("what it did ends its own quotation:\n%s", text)
	}
	if again := prompt(s, r, false); strings.Contains(again, "was lost") {
		t.Errorf("a later request says %q", again)
	}
	s.Turn.Saved = time.Time{}
	if text := prompt(s, r, true); !strings.Contains(text, "Nothing of what you did there was saved") {
		t.Errorf("without a checkpoint:\n%s", text)
	}
	s.Turn.Prepares = 1
	if text := prompt(s, r, true); text != "fix the widgets" {
		t.Errorf("in its first box: %s", text)
	}
}
