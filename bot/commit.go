package bot

import (
	"regexp"
	"strings"
	"unicode"

	"ship/session"
)

// CommitMessage is the message of a turn's commit: a subject of at most 72
// bytes, what was asked, the issue of a tracker that it is part of, and trailers
// that name the session and, as co-authors, each person who asked and has an
// e-mail address.
func CommitMessage(s session.State) string {
	parts := []string{PullRequestTitle(s)}
	for _, r := range requests(s) {
		if text := repeated(r); text != "" {
			parts = append(parts, text)
		}
	}
	if s.Origin != nil && ticket(s.Origin.Name) {
		// Words by which trackers link a commit to an issue and leave it open:
		// one commit need not be all. The pull request completes it.
		parts = append(parts, "Part of "+s.Origin.Name)
	}
	return strings.Join(append(parts, trailers(s)), "\n\n") + "\n"
}

// repeated repeats a request. The words are set in by four columns: what stands
// there is never a trailer.
func repeated(r session.Request) string {
	by, text := trailerName(r.By), strings.TrimSpace(legible(r.Text))
	if text == "" || by == "" {
		return ""
	}
	text = strings.TrimSuffix(Cut(text, maxAsked), cutHere)
	text = unskip(defuse(text))
	return by + " asked:\n\n" + indent.ReplaceAllString(text, "    $1")
}

// indent finds the lines that are not empty.
var indent = regexp.MustCompile(`(?m)^(.*\S)`)

func trailers(s session.State) string {
	lines := []string{"Ship-Session: " + trailerText(string(s.ID))}
	seen := map[string]bool{}
	for _, r := range requests(s) {
		email := strings.ToLower(r.By.Email)
		if name := trailerName(r.By); name != "" && address.MatchString(email) && !seen[email] {
			seen[email] = true
			lines = append(lines, "Co-authored-by: "+name+" <"+r.By.Email+">")
		}
	}
	return strings.Join(lines, "\n")
}

// address is an e-mail address as far as a trailer needs it: one @, and
// nothing that would end the trailer or begin another.
var address = regexp.MustCompile(`^[!-;=?A-~]{1,128}@[a-z0-9.-]{1,128}$`)

// trailerName is what a person is called in a trailer.
func trailerName(p session.Person) string {
	if name := trailerText(p.Name); name != "" {
		return name
	}
	return trailerText(p.Login)
}

// trailerText is text without line breaks, controls and the marks of an
// address.
func trailerText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), strings.ContainsRune("<>", r):
			return -1
		}
		return r
	}, legible(s))
	return clip(strings.Join(strings.Fields(defuse(s)), " "), 100)
}
