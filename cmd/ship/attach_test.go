package main

import (
	"errors"
	"strings"
	"testing"

	"ship/sandbox"
	"ship/session"
)

// TestNowhereToAttach: a sentence says why.
func TestNowhereToAttach(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]session.State{
		"goes on as gh.1.8":        {ID: "gh.1.7", Forward: "gh.1.8", Box: "b"},
		"has no box at the moment": {ID: "gh.1.7"},
		"":                         {ID: "gh.1.7", Box: "b"},
	} {
		if got := boxless(s); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	s := session.State{ID: "gh.1.7"}
	other := errors.New("other")
	if err := sayWhy(s, sandbox.ErrBusy); !strings.Contains(err.Error(), "paused") {
		t.Error(err)
	}
	if err := sayWhy(s, other); !errors.Is(err, other) || sayWhy(s, nil) != nil {
		t.Error(err)
	}
}
