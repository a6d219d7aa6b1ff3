package github

import (
	"strings"
	"testing"

	"ship/session"
)

func TestThreadKeys(t *testing.T) {
	t.Parallel()
	for _, th := range []thread{
		{repo: repo{installation: 99, id: 1296269, owner: "acme", name: "widgets"}, number: 7},
		{repo: repo{installation: 1, id: 2, owner: "a-b", name: "x.y_z"}, number: 1, pull: true},
	} {
		got, err := parseThread(th.key())
		if err != nil || got != th {
			t.Errorf("%q became %+v, %v", th.key(), got, err)
		}
		again, err := parseRepo(th.repo.key())
		if err != nil || again != th.repo {
			t.Errorf("%q became %+v, %v", th.repo.key(), again, err)
		}
		repoID, number, ok := sessionThread(th.id())
		if !ok || repoID != th.repo.id || int(number) != th.number {
			t.Errorf("%q became %d, %d, %t", th.id(), repoID, number, ok)
		}
	}
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"", "/", "1/2/acme/widgets", "1/2/acme/widgets/issues/", "1/2/acme/widgets/issues/0", "1/2/acme/widgets/issues/07",
		"1/2/acme/widgets/issues/-7", "1/2/acme/widgets/wiki/7", "0/2/acme/widgets/issues/7", "1/x/acme/widgets/issues/7",
		"1/2/ac me/widgets/issues/7", "1/2/../widgets/issues/7", "1/2/acme/../issues/7", "1/2/acme/widgets/pulls/7",
		"1/2/acme/widgets/issues/99999999999", "1/2/acme/wid/gets/issues/7", "1/2//widgets/issues/7", "+1/2/acme/widgets/issues/7",
	} {
		if got, err := parseThread(key); err == nil {
			t.Errorf("%q was read as %+v", key, got)
		}
	}
}

func TestRefs(t *testing.T) {
	t.Parallel()
	for _, r := range []ref{
		{kind: refThread}, {kind: refComment, id: 42}, {kind: refInline, id: 43, root: 42},
		{kind: refReview, id: 44, node: "PRR_kwDO/x=="}, {kind: refCheck, id: 45},
	} {
		if got, err := parseRef(r.String()); err != nil || got != r {
			t.Errorf("%q became %+v, %v", r, got, err)
		}
	}
	for _, s := range []string{"", "comment", "comment/", "comment/x", "comment/1/2", "inline/1", "inline/1/x", "review/1", "other/1", "thread/1"} {
		if got, err := parseRef(s); err == nil {
			t.Errorf("%q was read as %+v", s, got)
		}
	}
}

// FuzzKeys: what is read back is what was written, and nothing else is read.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{"1/2/acme/widgets/issues/7", "1/2/acme/widgets/pull/7", "1/2/acme/widgets", "inline/1/2", "review/1/PRR_x", "thread", "gh.1.2", "//", "comment/9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if th, err := parseThread(s); err == nil && th.key() != s {
			t.Errorf("thread %q is written %q", s, th.key())
		}
		if r, err := parseRepo(s); err == nil {
			if r.key() != s || strings.Contains(r.fullName(), "..") && (r.owner == ".." || r.name == "..") {
				t.Errorf("repository %q is written %q", s, r.key())
			}
		}
		if r, err := parseRef(s); err == nil && r.String() != s {
			t.Errorf("ref %q is written %q", s, r)
		}
		if repoID, number, ok := sessionThread(session.ID(s)); ok && number < 1<<31 {
			if th := (thread{repo: repo{id: repoID}, number: int(number)}); string(th.id()) != s {
				t.Errorf("session %q is written %q", s, th.id())
			}
		}
	})
}

// FuzzBranchOwner: whatever a branch is called, the session that it is said to
// belong to would call it so.
func FuzzBranchOwner(f *testing.F) {
	for _, seed := range []string{
		"ship/fix-gh-10-7", "ship/work-2-ln-0f8fad5b-d9cb-469f-a165-70867728950e", "ship/-gh-10-7-gh-10-8", "main", "ship/on-it",
	} {
		f.Add(seed)
	}
	r := repo{installation: 1, id: 10, owner: "acme", name: "widgets"}
	f.Fuzz(func(t *testing.T, branch string) {
		id := branchOwner(r, branch)
		if id == "" {
			return
		}
		if !session.BranchOf(branch, id) || !validSession.MatchString(string(id)) {
			t.Errorf("%q belongs to %q", branch, id)
		}
		if repoID, _, native := sessionThread(id); native && repoID != r.id {
			t.Errorf("%q belongs to another repository's %q", branch, id)
		}
	})
}

func TestOwner(t *testing.T) {
	t.Parallel()
	r := repo{installation: 1, id: 10, owner: "acme", name: "widgets"}
	const marker = "<!-- ship:session=gh.10.7 -->\nText"
	const guest = "ln-0f8fad5b-d9cb-469f-a165-70867728950e"
	tests := []struct {
		name string
		pull pullRef
		want session.ID
	}{
		{"by branch and marker", pullRef{"ship/fix-gh-10-7", 10, marker, true}, "gh.10.7"},
		{"by branch", pullRef{"ship/fix-gh-10-7", 10, "", false}, "gh.10.7"},
		{"started elsewhere", pullRef{"ship/fix-li-abc-1", 10, "<!-- ship:session=li.abc.1 -->\n", true}, "li.abc.1"},
		{"a guest", pullRef{"ship/fix-" + guest, 10, "<!-- ship:session=ln.0f8fad5b-d9cb-469f-a165-70867728950e -->\n", true}, "ln.0f8fad5b-d9cb-469f-a165-70867728950e"},
		{"a guest by branch", pullRef{"ship/fix-" + guest, 10, "", true}, "ln.0f8fad5b-d9cb-469f-a165-70867728950e"},
		{"a guest's second, opened by hand", pullRef{"ship/fix-2-" + guest, 10, "Text", false}, "ln.0f8fad5b-d9cb-469f-a165-70867728950e"},
		{"a guest with a title like an id", pullRef{"ship/fix-ln-5-gh-10-7-" + guest, 10, "", true}, "ln.0f8fad5b-d9cb-469f-a165-70867728950e"},
		{"a guest's from a fork", pullRef{"ship/fix-" + guest, 11, "", true}, ""},
		{"a guest's name elsewhere", pullRef{"fix-" + guest, 10, "", true}, ""},
		{"too short for a guest", pullRef{"ship/fix-ln-0f8fad5b-d9cb-469f-a165-70867728950", 10, "", true}, ""},
		{"more after a guest", pullRef{"ship/fix-" + guest + "-more", 10, "", true}, ""},
		{"a platform of three letters", pullRef{"ship/fix-x" + guest, 10, "", true}, ""},
		{"words of a person", pullRef{"ship/work-on-it", 10, "", false}, ""},
		{"somebody's own branch", pullRef{"feature", 10, marker, true}, ""},
		{"from a fork", pullRef{"ship/fix-gh-10-7", 11, marker, true}, ""},
		{"of a deleted fork", pullRef{"ship/fix-gh-10-7", 0, marker, true}, ""},
		{"of another repository", pullRef{"ship/fix-gh-11-7", 10, "<!-- ship:session=gh.11.7 -->", true}, ""},
		{"pasted by a person", pullRef{"ship/fix-li-abc-1", 10, "<!-- ship:session=li.abc.1 -->\n", false}, ""},
		{"marker of another session", pullRef{"ship/fix-gh-10-7", 10, "<!-- ship:session=gh.10.8 -->\n", true}, "gh.10.7"},
		{"quoted marker", pullRef{"ship/fix-li-abc-1", 10, "> <!-- ship:session=li.abc.1 -->\n", true}, ""},
		{"number zero", pullRef{"ship/fix-gh-10-0", 10, "", true}, ""},
		{"leading zero", pullRef{"ship/fix-gh-10-07", 10, "", true}, ""},
	}
	for _, tt := range tests {
		if got := owner(r, tt.pull); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
