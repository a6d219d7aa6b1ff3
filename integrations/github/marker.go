package github

import (
	"regexp"
	"strconv"
	"strings"

	"ship/session"
)

// Everything that ship posts begins with a hidden line that says what it is.
// Whoever finds one checks the author too: anybody can paste it.
const markerStart = "<!-- ship:"

// marked finds the marker of a session where it stands alone in a first line.
var marked = regexp.MustCompile(`^<!-- ship:session=([A-Za-z0-9][A-Za-z0-9.-]{0,127}) -->\s*(?:\n|$)`)

// branchSuffix and guestSuffix find the session in the name of a branch of
// ours; session makes such names, with a dash for each dot of the id. A guest
// is a session that began on another platform: its id is read where the
// platform's two letters and a UUID are all of it, for nothing that a person
// calls a branch looks like that. Other ids could begin at any of the dashes,
// and those of a title come before them.
var (
	branchSuffix = regexp.MustCompile(`^ship/.*-gh-([0-9]{1,18})-([0-9]{1,9})$`)
	guestSuffix  = regexp.MustCompile(`^ship/.*-([a-z]{2})-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
)

// statusMarker is the first line of a session's status comment, and of the
// pull request that it opened.
func statusMarker(id session.ID) string { return markerStart + "session=" + string(id) + " -->" }

// sayMarker is the first line of what an effect posted.
func sayMarker(effect string) string { return markerStart + "say=" + hidden(effect) + " -->" }

// hidden keeps a value from ending the comment that it is hidden in.
func hidden(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return '_'
	}, strings.ReplaceAll(s, "--", "-_"))
}

// ours tells whether a text begins as ours do.
func ours(body string) bool { return strings.HasPrefix(strings.TrimSpace(body), markerStart) }

// bears tells whether a text begins with this very marker, alone in its line.
func bears(body, marker string) bool {
	first, _, _ := strings.Cut(body, "\n")
	return strings.TrimRight(first, " \r") == marker
}

// firstMarker returns the marker that a text of ours begins with.
func firstMarker(body string) string {
	if !ours(body) {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
	return strings.TrimRight(first, " \r")
}

// pullRef is what tells whose a pull request is.
type pullRef struct {
	branch   string
	headRepo int64
	body     string
	// byBot: an app opened it.
	byBot bool
}

// owner returns the session that a pull request belongs to, or nothing. Its
// branch must lie in the repository itself, where only those who may write
// can have made it, and bear the session's name; a pull request that anybody
// pastes a marker into is not believed. Where somebody edited the marker away,
// the name of the branch alone does, if it can be read.
func owner(r repo, p pullRef) session.ID {
	if p.headRepo != r.id || !strings.HasPrefix(p.branch, "ship/") {
		return ""
	}
	if m := marked.FindStringSubmatch(p.body); m != nil && p.byBot {
		id := session.ID(m[1])
		repoID, _, native := sessionThread(id)
		if session.BranchOf(p.branch, id) && (!native || repoID == r.id) {
			return id
		}
	}
	return branchOwner(r, p.branch)
}

// branchOwner reads the session's id out of the name of its branch.
func branchOwner(r repo, branch string) session.ID {
	if m := guestSuffix.FindStringSubmatch(branch); m != nil {
		return session.ID(m[1] + "." + m[2])
	}
	m := branchSuffix.FindStringSubmatch(branch)
	if m == nil || m[1] != strconv.FormatInt(r.id, 10) {
		return ""
	}
	number, ok := parseID(m[2])
	if !ok {
		return ""
	}
	return thread{repo: r, number: int(number)}.id()
}
