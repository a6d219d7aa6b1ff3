package turn

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"ship/sandbox"
	"ship/session"
)

// TestPushProblem: what git prints decides whether a push is tried again.
func TestPushProblem(t *testing.T) {
	t.Parallel()
	const to = "To http://127.0.0.1:4010/broker/git/acme/widgets.git\n"
	for name, c := range map[string]struct {
		output string
		again  bool
	}{
		"GitHub has a bad moment":        {"remote: ship: the code host answered with status 503\nfatal: unable to access 'http://127.0.0.1:4010/broker/git/acme/widgets.git/': The requested URL returned error: 503", true},
		"GitHub wants to be left alone":  {"fatal: unable to access 'http://x/': The requested URL returned error: 429", true},
		"the answer is lost":             {"error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502\nsend-pack: unexpected disconnect", true},
		"a number in a name":             {"fatal: the remote end hung up: ship/fix-the-workflow-gh-4031-403", true},
		"the remote has a bad moment":    {to + " ! [remote rejected] HEAD -> ship/x (Internal Server Error)", true},
		"the app may not write":          {"fatal: unable to access 'http://x/': The requested URL returned error: 403", false},
		"the app was taken off":          {"remote: ship: the code host answered with status 404: Repository not found.\nfatal: repository 'http://127.0.0.1:4010/broker/git/acme/widgets.git/' not found", false},
		"the branch is protected":        {to + " ! [remote rejected] HEAD -> ship/x (protected branch hook declined)", false},
		"the broker does not let it":     {to + " ! [remote rejected] HEAD -> main (ship: this turn may push only to ship/x)", false},
		"the app may not push workflows": {to + " ! [remote rejected] HEAD -> ship/x (refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission)", false},
	} {
		err := pushProblem(session.State{Branch: "ship/x"}, &gitError{Command: "push", Code: 1, Output: c.output})
		var p *session.Problem
		if !errors.As(err, &p) || p.Again != c.again || p.Passing != c.again || p.Say == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestNoRoom: to try again makes no room, and people hear what does.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		&gitError{Command: "add", Code: 128, Output: "fatal: unable to write loose object file: No space left on device"},
		fmt.Errorf("in the box: writing %q: %w", "/work/.ship-marker", syscall.ENOSPC),
	} {
		var p *session.Problem
		if err := pushProblem(session.State{}, err); !errors.As(err, &p) || p.Again || !strings.Contains(p.Say, "no room left on the box's disk") {
			t.Errorf("%v: %+v", err, p)
		}
	}
}

// TestWorkLostBeforeThePush: it was lost once, and people hear what with.
func TestWorkLostBeforeThePush(t *testing.T) {
	t.Parallel()
	err := pushProblem(session.State{}, fmt.Errorf("git push: %w", sandbox.ErrGone))
	var p *session.Problem
	if !errors.As(err, &p) || !strings.Contains(p.Say, "before its work could be pushed") || !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("%+v, %v", p, err)
	}
}
