package bot

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"ship/session"
)

// What is said where people talk with ship: in messages of their own, with the
// end as an answer, and commands without /ship. None of it is ever empty.

// Bounds of what is told, in bytes.
const (
	maxTold  = 10 << 10
	maxWords = 2 << 10
	maxParam = 300
)

// Seen says that a request was noticed, and nothing that is not known yet: it
// is said before anything is looked at. The first one began the conversation.
func Seen(verb session.Verb, first bool) string {
	switch verb {
	case session.Stop, session.Withdraw:
		return "Stopping."
	case session.Retry:
		return "Trying that again."
	case session.Instruct, session.Finish:
		if first {
			return "On it. I read what this is about and look for the right repository, then I begin."
		}
		return "Got that, I take it from here."
	}
	return "One moment."
}

// Place tells a place in the queue.
func Place(place int) string { return queued(place) + ". I begin as soon as there is room." }

// SettingUp tells that a turn has begun, and where.
func SettingUp(v session.View) string {
	if v.Repo == "" {
		return "Setting up a sandbox."
	}
	return "Setting up a sandbox with " + code(clip(v.Repo, 200)) + "."
}

// Heartbeat breaks a long silence of a turn that has been running for a while.
func Heartbeat(v session.View, running time.Duration) string {
	text := headline(v)
	if v.Phase == session.PhaseWorking {
		text = "Still at it"
		if doing := phrase(v.Doing, 120); doing != "" {
			text += ": " + doing
		}
	}
	if running < time.Minute {
		return text + "."
	}
	return text + ", " + took(running) + " so far."
}

// deeds are the agent's tools as people say it.
var deeds = map[string]string{
	"bash": "Running", "read": "Reading", "list": "Looking into", "glob": "Looking for", "grep": "Searching for",
	"edit": "Editing", "multiedit": "Editing", "patch": "Editing", "write": "Writing", "webfetch": "Fetching",
	"websearch": "Searching for", "task": "Working on", "thinking": "Thinking about",
}

// Deed is the newest step of a turn as what is done, and to what. Neither is
// empty.
func Deed(v session.View) (action, parameter string) {
	tool, what := v.Doing, ""
	if n := len(v.Steps); n > 0 {
		tool, what, _ = strings.Cut(v.Steps[n-1], ": ")
	}
	tool = strings.TrimSpace(tool)
	if action = deeds[strings.ToLower(tool)]; action == "" {
		action = phrase(tool, 60)
	}
	if strings.TrimSpace(action) == "" {
		action = "Working on"
	}
	return action, objectOf(v, what)
}

// objectOf is what a step is done to: what it says, or else what the work is
// about.
func objectOf(v session.View, what string) string {
	candidates := []string{what}
	for _, t := range v.Todos {
		if t.Status == "in_progress" {
			candidates = append(candidates, t.Text)
		}
	}
	for _, c := range append(candidates, v.Title, v.Repo) {
		if text := strings.TrimSpace(phrase(c, maxParam)); text != "" {
			return text
		}
	}
	return "the request"
}

// spoken finds commands as they are written in comments.
var spoken = regexp.MustCompile("`/ship (\\S[^`]*)`")

// Spoken puts a sentence of ours, in which commands are written as in comments,
// into the words of a conversation: there /ship is left out.
func Spoken(text string) string {
	text = strings.NewReplacer(
		"Tell me what to do with `/ship …`", "Just tell me what to do",
		"Please write it again: `/ship …`", "Please write it again",
	).Replace(text)
	text = strings.TrimSpace(spoken.ReplaceAllString(text, "`$1`"))
	if text == "" {
		return "Done."
	}
	return text
}

// Answer is the end of a turn for whoever asked for it, in Markdown: what the
// agent answered, where the work is, what it took and what to do next.
func Answer(s session.State) string {
	v := session.ViewOf(s)
	if failed(v) {
		return paragraphs(sorry(v), kept(v), lastWords(v), numbers(v), whatNow(v))
	}
	answer := ""
	if v.Outcome != nil {
		answer = Cut(Neutralise(strings.TrimSpace(v.Outcome.Answer)), maxTold)
	}
	if answer == "" {
		answer = headline(v) + "."
	}
	return paragraphs(answer, work(v), numbers(v), whatNow(v))
}

// AnswerElsewhere is the end of a turn for a place where nobody asked for it:
// nothing of what was said, as not everybody there may read it.
func AnswerElsewhere(s session.State) string {
	v := session.ViewOf(s)
	return paragraphs("What was asked of me elsewhere has ended. "+headline(v)+".", work(v), numbers(v))
}

// AgentAsks is a question of the agent's, which ends a turn. What can be chosen
// is left to the platform, unless it has to be explained.
func AgentAsks(s session.State) string {
	v := session.ViewOf(s)
	q := asking(v)
	if q == nil {
		return Answer(s)
	}
	answer, question := strings.TrimSpace(v.Outcome.Answer), strings.TrimSpace(q.Text)
	if strings.Contains(answer, question) {
		question = ""
	}
	text := paragraphs(Cut(Neutralise(answer), maxTold), Cut(Neutralise(question), maxQuestion))
	if text == "" {
		text = "I need a decision from you before I can go on."
	}
	return paragraphs(text, explained(q.Choices), work(v), numbers(v), answerWith(Talking, len(q.Choices) > 0))
}

// explained lists choices of which not all say themselves what they mean.
func explained(all []session.Choice) string {
	if slices.ContainsFunc(all, func(c session.Choice) bool { return c.Label != "" && c.Label != c.Value }) {
		return choices(all)
	}
	return ""
}

// Settled says in a line how the last turn ended, for when later words have
// covered the answer.
func Settled(s session.State) string {
	v := session.ViewOf(s)
	text := headline(v) + "."
	if v.PR != nil {
		text += " The work is in " + pullRequest(v.PR) + "."
	}
	return text + " " + whatNow(v)
}

// paragraphs joins what there is.
func paragraphs(parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, "\n\n")
}

// sorry is the sentence that a turn ended with which did not succeed.
func sorry(v session.View) string {
	if v.Outcome != nil && strings.TrimSpace(v.Outcome.Say) != "" {
		return Cut(Neutralise(Spoken(v.Outcome.Say)), maxSay)
	}
	return headline(v) + "."
}

// lastWords are the agent's own in a turn that did not succeed: they are not
// the answer.
func lastWords(v session.View) string {
	if v.Outcome == nil || strings.TrimSpace(v.Outcome.Answer) == "" {
		return ""
	}
	return "The agent's last words:\n\n" + quote(Cut(Neutralise(strings.TrimSpace(v.Outcome.Answer)), maxWords))
}

// work says where the work is.
func work(v session.View) string {
	where := ""
	switch {
	case v.PR != nil:
		where = pullRequest(v.PR)
	case v.Changed && v.Branch != "":
		where = "branch " + code(clip(v.Branch, 100))
	default:
		return ""
	}
	where = strings.ToUpper(where[:1]) + where[1:]
	if v.Repo != "" {
		where += " in " + code(clip(v.Repo, 200))
	}
	if v.Changed && v.Files > 0 {
		where += ", " + count(v.Files, "file") + " changed"
	}
	return where + "."
}

func numbers(v session.View) string {
	if all := facts(v); len(all) > 0 {
		return strings.Join(all, " · ")
	}
	return ""
}

// whatNow says what a person can do now. The sentence of a failure may say it
// already.
func whatNow(v session.View) string {
	if failed(v) && v.Outcome != nil && strings.Contains(v.Outcome.Say, "`/ship") {
		return ""
	}
	return nextStep(Talking, v)
}

// Phrase makes one line of foreign text harmless, at most max bytes of it. It
// must not stand at the beginning of a line of Markdown.
func Phrase(s string, max int) string { return phrase(s, max) }
