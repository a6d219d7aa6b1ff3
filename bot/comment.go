package bot

import (
	"fmt"
	"net/url"
	"strings"

	"ship/session"
)

// Bounds of what a status comment shows, in bytes and entries. All of it stays
// well below the 65,535 that GitHub allows for a comment or a check's summary.
const (
	maxAnswer = 8 << 10
	maxSay    = 1 << 10
	maxTitle  = 200
	maxTodo   = 200
	maxTodos  = 40
	maxStep   = 300
	maxSteps  = 8
	maxLogins = 10
	// maxCheckTitle is GitHub's bound for the title of a check's output.
	maxCheckTitle = 255
)

// Markdown renders the status comment of a session, without a marker: that is
// the platform's. Equal views render equally.
func Markdown(v session.View) string {
	return "### " + sign(v) + " " + headline(v) + "\n\n" + details(v)
}

// CheckOutput renders the check run of a session: a title of at most 255 bytes
// and a summary in Markdown.
func CheckOutput(v session.View) (title, summary string) {
	return clip(headline(v), maxCheckTitle), details(v)
}

func sign(v session.View) string {
	switch {
	case v.Phase == session.PhaseQueued:
		return "⏳"
	case v.Phase != session.PhaseEnded:
		return "🚢"
	case paused(v):
		return "⏸️"
	case asking(v) != nil:
		return "❓"
	case ending(v) == session.Completed:
		return "✅"
	case ending(v) == session.Stopped:
		return "⏹️"
	}
	return "⚠️"
}

// details is all below the heading, in paragraphs.
func details(v session.View) string {
	var parts []string
	for _, part := range []string{
		asked(v), said(v), answered(v), shows(v), openQuestion(v), checklist(v.Todos), lastSteps(v.Steps), kept(v), advice(v), footer(v),
	} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n\n")
}

func asked(v session.View) string {
	title := phrase(v.Title, maxTitle)
	switch by := logins(v.By); {
	case title == "" && by == "":
		return ""
	case title == "":
		return "Asked by " + by + "."
	case by == "":
		return "About: " + title
	default:
		return "Asked by " + by + ", about: " + title
	}
}

// logins lists people once each, as code so that nobody is notified.
func logins(by []string) string {
	var names []string
	seen := map[string]bool{}
	for _, login := range by {
		if login != "" && !seen[login] {
			seen[login] = true
			names = append(names, code(clip(login, 60)))
		}
	}
	if more := len(names) - maxLogins; more > 0 {
		names = append(names[:maxLogins], fmt.Sprintf("%d more", more))
	}
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// said is the sentence that a failed turn ended with.
func said(v session.View) string {
	if !failed(v) || v.Outcome == nil || paused(v) {
		return "" // the question says it
	}
	return Cut(Neutralise(strings.TrimSpace(v.Outcome.Say)), maxSay)
}

func answered(v session.View) string {
	if v.Phase != session.PhaseEnded || v.Outcome == nil || strings.TrimSpace(v.Outcome.Answer) == "" {
		return ""
	}
	answer := quote(Cut(Neutralise(strings.TrimSpace(v.Outcome.Answer)), maxAnswer))
	if ending(v) != session.Completed {
		return folded("The agent's last words", answer)
	}
	return answer
}

// shows is a paragraph with the link to what the agent shows.
func shows(v session.View) string {
	if look := Preview(v); look != "" {
		return "👀 " + look + "."
	}
	return ""
}

func checklist(todos []session.Todo) string {
	more := len(todos) - maxTodos
	if more > 0 {
		todos = todos[:maxTodos]
	}
	var lines []string
	for _, t := range todos {
		lines = append(lines, task(t))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", more))
	}
	return strings.Join(lines, "\n")
}

func task(t session.Todo) string {
	text := phrase(t.Text, maxTodo)
	switch t.Status {
	case "completed":
		return "- [x] " + text
	case "in_progress":
		return "- [ ] ▸ " + text
	case "cancelled":
		return "- [ ] (dropped) " + text
	}
	return "- [ ] " + text
}

func lastSteps(steps []string) string {
	if len(steps) == 0 {
		return ""
	}
	return folded("Last steps", codeBlock(oneLiners(steps[max(0, len(steps)-maxSteps):])))
}

// oneLiners makes each text one line of code.
func oneLiners(texts []string) []string {
	out := make([]string, 0, len(texts))
	for _, s := range texts {
		out = append(out, clip(strings.Join(strings.Fields(legible(s)), " "), maxStep))
	}
	return out
}

// kept says where the work of a turn is that did not succeed.
func kept(v session.View) string {
	switch {
	case !failed(v) || !v.Changed:
		return ""
	case v.PR != nil:
		return "What was done so far is in " + pullRequest(v.PR) + "."
	case v.Branch != "":
		return "What was done so far is on branch " + code(v.Branch) + "."
	}
	return ""
}

// advice is what to do next. The question says it already, and the sentence of
// a failure may.
func advice(v session.View) string {
	if v.Phase != session.PhaseEnded || asking(v) != nil || failed(v) && v.Outcome != nil && strings.Contains(v.Outcome.Say, "`/ship") {
		return ""
	}
	return "**Next:** " + nextStep(Commenting, v)
}

func footer(v session.View) string {
	var parts []string
	if v.PR != nil && !failed(v) {
		parts = append(parts, pullRequest(v.PR))
	}
	if v.Branch != "" {
		parts = append(parts, branch(v))
	}
	parts = append(parts, Facts(v)...)
	if v.Phase == session.PhaseEnded && v.Changed && v.Files > 0 {
		parts = append(parts, Count(v.Files, "file")+" changed")
	}
	if v.Phase != session.PhaseEnded {
		parts = append(parts, "`/ship stop` stops me")
	}
	parts = append(parts, "`/ship help`")
	return "<sub>" + strings.Join(parts, " · ") + "</sub>"
}

func pullRequest(pr *session.PullRequest) string {
	what := "pull request "
	if pr.Draft {
		what = "draft pull request "
	}
	return what + link(fmt.Sprintf("#%d", pr.Number), pr.URL)
}

// branch links to the branch where the pull request's address shows how.
func branch(v session.View) string {
	name := code(clip(v.Branch, 100))
	if v.PR == nil {
		return "branch " + name
	}
	home, _, ok := strings.Cut(v.PR.URL, "/pull/")
	if !ok {
		return "branch " + name
	}
	return "branch " + link(name, home+"/tree/"+(&url.URL{Path: v.Branch}).EscapedPath())
}
