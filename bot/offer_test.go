package bot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ship/session"
)

// TestOffer: no repository is named to whom may not work in it.
func TestOffer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		names    []string
		login    string
		may      []string
		open     []string
		refusal  string
		stranger bool
	}{
		{"some", []string{"acme/a", "acme/secret", "acme/b"}, "ada", []string{"acme/a", "acme/b"}, []string{"acme/a", "acme/b"}, "", false},
		{"none of them", []string{"acme/secret", "acme/vault"}, "ada", nil, nil, closed, true},
		{"nobody on the code host", []string{"acme/a", "acme/b"}, "", nil, nil, unmatched, true},
		{"there is none", nil, "ada", nil, nil, noRepository, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			host := offering(tt.login, tt.may...)
			o, err := (&Gate{Repositories: host, Rights: host}).offer(t.Context(), ada, tt.names)
			if err != nil || !slices.Equal(o.open, tt.open) || o.Refusal != tt.refusal || o.Stranger != tt.stranger || strings.Contains(o.Refusal, "acme/") {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

func offering(login string, may ...string) *forge {
	f := &forge{logins: map[string]string{ada.Email: login}, may: map[string]bool{}, err: map[string]error{}}
	for _, name := range may {
		f.may[login+" "+name] = true
	}
	return f
}

// TestOfferBounds: a question has few choices, and the code host is not asked
// for all that there are.
func TestOfferBounds(t *testing.T) {
	t.Parallel()
	var names []string
	for n := range 40 {
		names = append(names, fmt.Sprintf("acme/r%d", n))
	}
	all, none := offering("ada", names...), offering("ada")
	if o, err := (&Gate{Repositories: all, Rights: all}).offer(t.Context(), ada, names); err != nil || !slices.Equal(o.open, names[:maxOffered]) {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := (&Gate{Repositories: none, Rights: none}).offer(t.Context(), ada, names); err != nil || len(o.open) != 0 || len(none.asked) != 3*maxLooks {
		t.Errorf("%+v, %v: %d questions", o, err, len(none.asked))
	}
	all.err["may"] = errAway
	if _, err := (&Gate{Repositories: all, Rights: all}).offer(t.Context(), ada, names); !errors.Is(err, errAway) {
		t.Error(err)
	}
	if q := whichOf(names[:2]); len(q.Choices) != 2 || q.Choices[1] != (session.Choice{Label: "acme/r1", Value: "acme/r1"}) || q.Text == "" {
		t.Errorf("%+v", q)
	}
}

func TestElsewhere(t *testing.T) {
	t.Parallel()
	begun := session.State{Turns: 1, Repo: session.Repo{Name: "acme/a", Key: "k"}, Base: "main", PR: &session.PullRequest{Number: 7}}
	known, merged := begun, begun
	known.Turns, merged.Closed = 0, true
	for _, tt := range []struct {
		name string
		s    session.State
		r    session.Request
		want string
	}{
		{"the same", begun, session.Request{Repo: "ACME/a", Branch: "main"}, ""},
		{"another repository", begun, session.Request{Repo: "acme/b"}, "For `acme/b`, ask there."},
		{"another branch", begun, session.Request{Branch: "next"}, "#7 goes into `main` already"},
		{"another branch, after the end", merged, session.Request{Branch: "next"}, ""},
		{"not begun", known, session.Request{Repo: "acme/b"}, ""},
	} {
		if got := Elsewhere(tt.s, tt.r, "ask there"); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	if RepoOf(begun) != "acme/a" || RepoOf(known) != "" {
		t.Error("the repository of a session")
	}
}
