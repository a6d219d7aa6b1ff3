package bot

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ship/session"
)

const (
	// maxSubject is the length in bytes that git's tools show of a subject.
	maxSubject = 72
	// maxAsked is how much of an instruction a pull request repeats.
	maxAsked = 2 << 10
	// maxSummary is how much of the agent's answer it holds.
	maxSummary = 16 << 10
	// maxProof is how many commands it lists.
	maxProof = 20
)

// Marker is the line, hidden in Markdown, by which a session's texts are found
// again.
func Marker(id session.ID) string { return "<!-- ship:session=" + string(id) + " -->" }

// PullRequestTitle names the work in at most 72 bytes: the title of the issue,
// else the instruction. As the subject of a merge it closes no issue and skips
// no check.
func PullRequestTitle(s session.State) string {
	if title := subject(s.Title); title != "" {
		return title
	}
	for _, r := range requests(s) {
		if title := subject(firstWords(r.Text)); title != "" {
			return title
		}
	}
	return "Changes by ship"
}

// PullRequestBody describes a session's pull request: who asked for what, what
// the agent says of its work, and, folded, the proof. It ends with the marker.
// References, such as "Closes #12", are put first as they are, after that to the
// session's origin: the one way to link the pull request to something, for what
// others wrote is neutralised.
func PullRequestBody(s session.State, references ...string) string {
	var parts []string
	for _, part := range slices.Concat([]string{origin(s)}, references, askedFor(s), []string{summary(s), unanswered(s)}) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(append(parts, proof(s), Marker(s.ID)), "\n\n")
}

// ticketName is what trackers call an issue, such as ENG-42.
var ticketName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,15}-[0-9]{1,9}$`)

// ticket tells whether an issue can be referred to by its name. GH-42 is what
// GitHub calls its own issue #42: a team in a tracker may have that name too, and
// would close what is another's.
func ticket(name string) bool {
	return ticketName.MatchString(name) && !strings.EqualFold(name[:3], "GH-")
}

// origin refers to what the session is about where it began. A tracker that
// watches the code host completes its issue when the pull request is merged, if
// the name of the issue follows upon a word for that; Linear's does.
func origin(s session.State) string {
	switch o := s.Origin; {
	case o == nil || strings.TrimSpace(o.Name) == "":
		return ""
	case !ticket(o.Name):
		return "For " + link(code(clip(o.Name, maxTitle)), o.URL)
	case link("", o.URL) == "":
		return "Fixes " + o.Name
	default:
		return "Fixes " + o.Name + " (" + link(host(o.URL), o.URL) + ")"
	}
}

// host names the site that an address leads to.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "link"
	}
	return code(clip(u.Host, 100))
}

func requests(s session.State) []session.Request {
	if s.Turn == nil {
		return nil
	}
	return s.Turn.Requests
}

// askedFor quotes the instructions of the turn, within a common bound.
func askedFor(s session.State) []string {
	var parts, silent []string
	room := maxAsked
	for _, r := range requests(s) {
		text := Cut(Neutralise(strings.TrimSpace(r.Text)), max(room, 0))
		if text == "" {
			silent = append(silent, r.By.Login)
			continue
		}
		room -= len(text)
		by := logins([]string{r.By.Login})
		parts = append(parts, strings.TrimSpace(by+" asked:"), quote(text))
	}
	if by := logins(silent); len(parts) == 0 && by != "" {
		parts = append(parts, "Asked for by "+by+".")
	}
	return parts
}

func summary(s session.State) string {
	if s.Turn == nil || s.Turn.Outcome == nil {
		return ""
	}
	o := s.Turn.Outcome
	text := Cut(Neutralise(strings.TrimSpace(o.Answer)), maxSummary)
	if o.Ending == session.Completed {
		return text
	}
	say := "**The work is not finished.** " + Cut(Neutralise(strings.TrimSpace(o.Say)), maxSay)
	if text == "" {
		return say
	}
	return say + "\n\n" + text
}

// unanswered is the question that the turn ended with. The text stays when it is
// answered, so it says when that was.
func unanswered(s session.State) string {
	if s.Turn == nil {
		return ""
	}
	if o := s.Turn.Outcome; o != nil && o.Ending == session.Completed && o.Question != nil {
		return "**When this was opened, I was waiting for an answer:**\n\n" + posed(*o.Question)
	}
	return ""
}

// proof is what the work took, folded.
func proof(s session.State) string {
	if s.Turn == nil {
		return folded("How this was made", "- Session: "+code(string(s.ID)))
	}
	t, used := *s.Turn, usage(*s.Turn)
	lines := []string{"- Session: " + code(string(s.ID)) + fmt.Sprintf(", turn %d", t.N)}
	add := func(what, value string) {
		if value != "" {
			lines = append(lines, "- "+what+": "+value)
		}
	}
	add("Model", code(clip(t.Model, 128)))
	add("Model calls", calls(used))
	add("Cost", usd(used.USD))
	add("Duration", duration(t))
	text := strings.Join(lines, "\n")
	if t.Outcome != nil && len(t.Outcome.Commands) > 0 {
		last := t.Outcome.Commands[max(0, len(t.Outcome.Commands)-maxProof):]
		text += "\n\nCommands that were run, in order:\n\n" + codeBlock(oneLiners(last))
	}
	return folded("How this was made", text)
}

func usage(t session.Turn) session.Usage {
	if t.Outcome != nil {
		return t.Outcome.Usage
	}
	return t.Progress.Usage
}

func calls(u session.Usage) string {
	switch {
	case u.Calls == 0:
		return ""
	case u.Input+u.Output == 0:
		return fmt.Sprint(u.Calls)
	}
	return fmt.Sprintf("%d, with %s tokens in and %s out", u.Calls, tokens(u.Input), tokens(u.Output))
}

func tokens(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// duration of a turn. While its pull request is being opened it has not ended,
// and what counts is when the agent did something last.
func duration(t session.Turn) string {
	end := t.Finished
	if end.IsZero() {
		end = t.Progress.Active
	}
	if t.Started.IsZero() || end.Sub(t.Started) < time.Second {
		return ""
	}
	return took(end.Sub(t.Started))
}

// firstWords is the first line of a text that says something.
func firstWords(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimSpace(line), "#*-+ \t")
		if line != "" && line[0] != '>' && fenceOf(line) == "" {
			return line
		}
	}
	return ""
}

// skipping are the words by which a commit message switches checks off.
var skipping = regexp.MustCompile(`(?i)\[(?:skip|no|ci|actions)[ _-]`)

// subject makes one line of a text: at most 72 bytes, without a full stop,
// harmless.
func subject(text string) string {
	text = strings.Join(strings.Fields(legible(text)), " ")
	if len(text) > 7 && strings.EqualFold(text[:7], "please ") {
		text = text[7:]
	}
	text = capital(strings.TrimRight(text, " .,;:"))
	out := text
	for room := maxSubject; ; {
		out = unskip(phrase(text, room))
		if len(out) <= maxSubject || room <= 0 {
			return out
		}
		room -= len(out) - maxSubject
	}
}

func unskip(s string) string {
	return skipping.ReplaceAllStringFunc(s, func(m string) string { return "[" + joint + m[1:] })
}

// capital writes a plain first word with a capital letter; go.mod stays as it
// is.
func capital(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLower(r) }) {
		return text
	}
	r, n := utf8.DecodeRuneInString(text)
	if n == 0 {
		return text
	}
	return string(unicode.ToUpper(r)) + text[n:]
}
