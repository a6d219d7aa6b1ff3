package bot

import (
	"fmt"
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
// is said before anything is looked at, the request's right included. The first
// one began the conversation; v is what goes on in it.
func Seen(v session.View, verb session.Verb, first bool) string {
	atWork := v.Turn > 0 && v.Phase != session.PhaseEnded && v.Phase != session.PhaseAsking
	switch verb {
	case session.Stop, session.Withdraw:
		if atWork {
			return "Stopping."
		}
	case session.Retry:
		if v.Turn > 0 && !atWork {
			return "Taking that up again."
		}
	case session.Instruct, session.Finish:
		return noted(v, first, atWork)
	}
	return "One moment."
}

// noted is what is said of an instruction.
func noted(v session.View, first, atWork bool) string {
	switch {
	case first:
		return "Thanks, I'm looking into this. First I read it through and find the right repository."
	case v.Phase == session.PhaseAsking:
		return "Thanks, let me see."
	case atWork:
		return "Got it, I pass that on to the work at hand."
	case v.Turn == 0:
		return "Got it, I look into this now."
	}
	return "Got it, back to work."
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
		text = "Still " + activity(v)
	}
	if running < time.Minute {
		return text + "."
	}
	return text + ", " + took(running) + " so far."
}

// activity is what the agent does now, to be put behind "I am".
func activity(v session.View) string {
	tool, what, _ := strings.Cut(strings.TrimSuffix(v.Doing, failing), ": ")
	deed := deeds[strings.ToLower(strings.TrimSpace(tool))]
	switch {
	case strings.TrimSpace(what) != "" && deed != "":
		return strings.ToLower(deed[:1]) + deed[1:] + " " + code(clip(strings.Join(strings.Fields(legible(what)), " "), 120))
	case v.Doing == "thinking", strings.HasPrefix(v.Doing, waiting):
		return phrase(v.Doing, 120)
	}
	return "at it"
}

const (
	// failing ends the text of a step that did not work.
	failing = " (failed)"
	// waiting begins what is said of an agent that can do nothing itself.
	waiting = "waiting for "
)

// deeds are the agent's tools as people say it.
var deeds = map[string]string{
	"bash": "Running", "read": "Reading", "list": "Looking into", "glob": "Looking for", "grep": "Searching for",
	"edit": "Editing", "multiedit": "Editing", "patch": "Editing", "write": "Writing", "webfetch": "Fetching",
	"websearch": "Searching for", "task": "Working on",
}

// moods are what the agent does when it uses no tool: to the work itself.
var moods = map[string]string{"thinking": "Thinking about", "starting": "Starting with", "finished": "Finishing"}

// Deed is the newest step of a turn as what is done, and to what; neither is
// empty. The result is, unless the step is known to have failed.
func Deed(v session.View) (action, parameter, result string) {
	if what, ok := strings.CutPrefix(v.Doing, waiting); ok {
		return "Waiting for", objectOf(v, what), ""
	}
	tool, what := v.Doing, ""
	if n := len(v.Steps); n > 0 {
		step, failed := strings.CutSuffix(v.Steps[n-1], failing)
		if failed {
			result = "failed"
		}
		tool, what, _ = strings.Cut(step, ": ")
	}
	return actionOf(tool, what), objectOf(v, what), result
}

// actionOf is what is done with a tool. Until the agent has said to what, that is
// not told: the object is the work then, which is not read or edited.
func actionOf(tool, what string) string {
	tool = strings.TrimSpace(tool)
	key, vague := strings.ToLower(tool), strings.TrimSpace(what) == ""
	switch {
	case moods[key] != "":
		return moods[key]
	case deeds[key] != "" && !vague:
		return deeds[key]
	case deeds[key] == "" && strings.TrimSpace(phrase(tool, 60)) != "":
		return phrase(tool, 60)
	}
	return "Working on"
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
		"then `/ship retry`", "then reply `retry`",
		"Put what is to be done behind a second `/ship`, on a line of its own", "Write what is to be done in a message of its own",
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
		return paragraphs(sorry(v), kept(v)+unchanged(v), lastWords(v), whatNow(v), numbers(v))
	}
	answer := ""
	if v.Outcome != nil {
		answer = Cut(Neutralise(strings.TrimSpace(v.Outcome.Answer)), maxTold)
	}
	if answer == "" {
		answer = headline(v) + "."
	}
	if v.Changed { // the work is what was asked for, and otherwise the answer is
		return paragraphs(work(v), answer, shows(v), whatNow(v), numbers(v))
	}
	return paragraphs(answer, work(v), shows(v), whatNow(v), numbers(v))
}

// AnswerElsewhere is the end of a turn for a place where nobody asked for it:
// nothing of what was said, as not everybody there may read it.
func AnswerElsewhere(s session.State) string {
	v := session.ViewOf(s)
	text := "What was asked of me elsewhere is done."
	switch {
	case asking(v) != nil:
		text = "What was asked of me elsewhere needs an answer there before I can go on."
	case ending(v) != session.Completed:
		text = "What was asked of me elsewhere has ended. " + headline(v) + "."
	}
	return paragraphs(text, work(v), numbers(v))
}

// AgentAsks is a question of the agent's, which ends a turn. What can be chosen
// is left to the platform, unless it has to be explained.
func AgentAsks(s session.State) string {
	v := session.ViewOf(s)
	q := asking(v)
	if q == nil {
		return Answer(s)
	}
	if paused(v) {
		return paragraphs(Neutralise(q.Text), kept(v), answerWith(Talking, true), numbers(v))
	}
	answer, question := strings.TrimSpace(v.Outcome.Answer), strings.TrimSpace(q.Text)
	if strings.Contains(answer, question) {
		question = ""
	}
	text := paragraphs(Cut(Neutralise(answer), maxTold), Cut(Neutralise(question), maxQuestion))
	if text == "" {
		text = "I need a decision from you before I can go on."
	}
	return paragraphs(text, explained(q.Choices), answerWith(Talking, len(q.Choices) > 0), work(v), numbers(v))
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
	return text + " " + nextStep(Talking, v)
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

// sorry is the sentence that a turn ended with which did not succeed, without
// what is said below in the words of a conversation: whether anything is left
// of it, and what to do.
func sorry(v session.View) string {
	say := ""
	if v.Outcome != nil {
		say = strings.TrimSpace(v.Outcome.Say)
	}
	if advised(v) {
		say = strings.TrimSuffix(say, " Ask it to go on.")
	} else if i := strings.LastIndex(say, ". "); i > 0 {
		say = strings.NewReplacer("; its work is kept", "", "; the work so far is kept", "").Replace(say[:i+1])
	}
	if say == "" {
		return headline(v) + "."
	}
	return Cut(Neutralise(Spoken(say)), maxSay)
}

// advised: only the sentence of a failure knows what to do about it. The others
// end in advice that is the same for all of their kind.
func advised(v session.View) bool {
	e := ending(v)
	return e == session.Crashed || e == session.Completed || e == ""
}

// unchanged says of a turn that did not succeed that nothing is left of it. One
// that crashed may have left something where nobody can look.
func unchanged(v session.View) string {
	if v.Changed || advised(v) {
		return ""
	}
	return "No file was changed."
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
	case v.PR != nil && v.PR.Draft:
		where = "**" + link(fmt.Sprintf("Draft pull request #%d", v.PR.Number), v.PR.URL) + "**"
	case v.PR != nil:
		where = "**" + link(fmt.Sprintf("Pull request #%d", v.PR.Number), v.PR.URL) + "**"
	case v.Changed && v.Branch != "":
		where = "Branch " + code(clip(v.Branch, 100))
	default:
		return ""
	}
	if v.Repo != "" {
		where += " in " + code(clip(v.Repo, 200))
	}
	if v.Changed && v.Files > 0 {
		where += ", " + Count(v.Files, "file") + " changed"
	}
	return where + "."
}

func numbers(v session.View) string {
	if all := Facts(v); len(all) > 0 {
		return strings.Join(all, " · ")
	}
	return ""
}

// whatNow says what a person can do now. The sentence of a failure may say it
// already.
func whatNow(v session.View) string {
	if failed(v) && advised(v) && v.Outcome != nil && strings.Contains(v.Outcome.Say, "`/ship") {
		return ""
	}
	return nextStep(Talking, v)
}

// Phrase makes one line of foreign text harmless, at most max bytes of it. It
// must not stand at the beginning of a line of Markdown.
func Phrase(s string, max int) string { return phrase(s, max) }
