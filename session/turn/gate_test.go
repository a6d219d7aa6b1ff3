package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ship/sandbox"
	"ship/session"
)

func TestLargeFilesStayBehind(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bounds.file = 5000
	d.agent(`echo '*.o' > .gitignore && echo two > b && mkdir sub
		for f in plain staged sub/odd\"name x.o; do truncate -s 5001 $f; done
		git add staged; truncate -s 5000 fits`)
	left, err := d.changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := `Not pushed, because too large: "staged", "plain", "sub/odd\"name".`
	if got := left.notPushed(); got != want {
		t.Errorf("what is said of it: %s", got)
	}
	d.mustPublish()
	if got := d.sh(d.remote, "git ls-tree -r --name-only "+d.branch+" | xargs"); got != ".gitignore a b fits" {
		t.Errorf("pushed: %s", got)
	}
	again, err := d.changes(t.Context())
	if err != nil || len(again.oversized) != 3 || again.strays != 3 {
		t.Errorf("then %+v, %v", again, err)
	}
}

// TestWhatIsNotPushed: an agent that works on can put each of it right.
func TestWhatIsNotPushed(t *testing.T) {
	t.Parallel()
	const secret = "the-key-of-the-model-provider"
	for name, c := range map[string]struct {
		script, better string
		want           error
	}{
		"what a build left": {
			"mkdir out && cd out && seq 11 | xargs touch",
			"git add -A && git commit -q -m 'they are all needed'", errStrays,
		},
		"too much": {
			"for i in 1 2 3 4 5; do truncate -s 4500 f$i && echo $i >> f$i; done",
			"git reset -q HEAD~1 && rm f* && echo two > b", errBulky,
		},
		"a secret": {
			"echo key=" + secret + " > b && git add b && git commit -q -m two && echo two > b && git commit -q -am three",
			"git reset -q --soft HEAD~2", errSecret,
		},
		"a secret in a message": {
			"git commit -q --allow-empty -m 'used " + secret + "'",
			"git reset -q --soft HEAD~1; echo two > b", errSecret,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.secrets, d.bounds = []string{secret}, bounds{file: 5000, push: 20000, strays: 10}
			d.agent(c.script)
			if _, err := d.publish(t.Context(), d.start, "work"); !errors.Is(err, c.want) {
				t.Fatalf("published with %v", err)
			}
			if got := d.sh(d.remote, "git branch --list 'ship/*'"); got != "" {
				t.Errorf("on the remote there is %s", got)
			}
			d.agent(c.better)
			if p := d.mustPublish(); !p.Changed {
				t.Errorf("then published %+v", p)
			}
		})
	}
}

func TestALargeFileInACommit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bounds.file = 5000
	d.agent("truncate -s 5001 big && git add big && git commit -q -m big && git rm -q big && git commit -q -m small")
	_, err := d.publish(t.Context(), d.start, "work")
	var o *oversizedError
	if !errors.As(err, &o) || o.path != "big" {
		t.Errorf("published with %v", err)
	}
	var p *session.Problem
	if err := pushProblem(session.State{}, err); !errors.As(err, &p) || p.Again || p.Say == "" {
		t.Errorf("told %+v", p)
	}
}

// TestASecretThatLiesAcrossPieces of what is read.
func TestASecretThatLiesAcrossPieces(t *testing.T) {
	t.Parallel()
	const secret = "the-key-of-the-model-provider"
	box := &folder{outs: map[string][]byte{}}
	r := &repository{box: box, secrets: []string{"something-else", secret}}
	for _, at := range []int{0, 90, 100 - len(secret), 99, 100, 1<<20 + 90, 3 << 20} {
		all := bytes.Repeat([]byte("."), 3<<20+len(secret))
		for _, want := range []error{nil, errSecret} {
			box.outs["p"] = all
			out := sandbox.Output{Process: sandbox.Process{Output: "p", Size: int64(len(all))}, Data: all[:100]}
			if err := r.read(t.Context(), out); !errors.Is(err, want) {
				t.Errorf("at %d: %v, want %v", at, err, want)
			}
			copy(all[at:], secret)
		}
	}
	box.outs["p"] = nil
	if err := r.read(t.Context(), sandbox.Output{Process: sandbox.Process{Output: "p", Size: 9}}); err == nil {
		t.Error("what could not be read was let through")
	}
}

// TestSecretsAcrossBatches: no batch is larger than what a box keeps of output.
func TestSecretsAcrossBatches(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.secrets, d.bounds.file = []string{"the-key-of-the-model-provider"}, 5000
	d.agent("for i in 1 2 3; do truncate -s 3000 f$i && echo $i >> f$i; done; echo the-key-of-the-model-provider >> f3")
	if _, err := d.publish(t.Context(), d.start, "work"); !errors.Is(err, errSecret) {
		t.Errorf("published with %v", err)
	}
	for name, out := range d.box.(*folder).outs {
		if len(out) > 6000 { // with the headers
			t.Errorf("%s printed %d bytes", name, len(out))
		}
	}
}

func TestGuarded(t *testing.T) {
	t.Parallel()
	got := guarded([]string{
		"short", "  the-key-of-the-model-provider\n", "redis://127.0.0.1:6379/0", "redis://:a-long-password@127.0.0.1:6379/0", "unix://ship:another-password@/run/redis.sock", "",
	})
	if fmt.Sprint(got) != "[the-key-of-the-model-provider a-long-password another-password]" {
		t.Errorf("guarded: %q", got)
	}
}

// TestASecretIsToldOnce: another try would find it again.
func TestASecretIsToldOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent("echo the-key-of-the-model-provider > b")
	_, w, job := newYard(t, d)
	w.Secrets = []string{"the-key-of-the-model-provider"}
	_, err := w.Perform(t.Context(), job)
	var p *session.Problem
	if !errors.As(err, &p) || p.Again || !strings.Contains(p.Say, "secret") || strings.Contains(err.Error(), w.Secrets[0]) {
		t.Errorf("told %+v", err)
	}
}

func TestTheAnswerMentionsWhatStaysBehind(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bounds.file = 5000
	d.agent("truncate -s 5001 big")
	_, w, _ := newYard(t, d)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(session.ErrStopRequested) // a turn that was stopped says so too
	out := session.Outcome{Answer: "Done."}
	w.mention(ctx, d.repository, &out)
	if want := "Done.\n\nNot pushed, because too large: \"big\"."; out.Answer != want {
		t.Errorf("the answer is %q", out.Answer)
	}
}

// TestABranchThatIsGoneStaysGone: the pull request was closed while the agent
// worked, and its branch deleted.
func TestABranchThatIsGoneStaysGone(t *testing.T) {
	t.Parallel()
	for gone, want := range map[bool]string{true: "nothing", false: "three"} {
		d := newDesk(t)
		d.agent("echo two > b")
		d.mustPublish()
		d.begin()
		d.agent("echo three > b")
		if gone {
			d.sh(d.remote, "git branch -q -D "+d.branch)
		}
		_, w, job := newYard(t, d)
		job.State.Closed = true
		p, err := w.Perform(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.pushed("b"); got != want || p.Published.Changed == gone {
			t.Errorf("gone %v: published %+v, %s", gone, p.Published, got)
		}
	}
}
