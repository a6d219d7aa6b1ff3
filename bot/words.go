package bot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"ship/session"
)

// StatusLine is what a session does, or how it ended, in one line of text: the
// answer to the status verb. Foreign words in it are neutralised.
func StatusLine(i Idiom, v session.View) string {
	parts := []string{i.either(headline(v), doingNow(v)) + "."}
	if v.Turn > 0 {
		parts = append(parts, sentence(Facts(v)))
	}
	if v.PR != nil && !strings.Contains(parts[0], v.PR.URL) {
		parts = append(parts, "Pull request "+link("#"+strconv.Itoa(v.PR.Number), v.PR.URL)+".")
	}
	if look := Preview(v); look != "" {
		parts = append(parts, look+".")
	}
	if q := asking(v); q != nil {
		parts = append(parts, "I asked: "+phrase(q.Text, maxQuestion))
	}
	if failed(v) || asking(v) != nil {
		parts = append(parts, nextStep(i, v))
	}
	return strings.Join(parts, " ")
}

// doingNow is the headline where people talk: they asked what ship is doing.
func doingNow(v session.View) string {
	switch {
	case v.Phase == session.PhaseWorking:
		return "I'm " + activity(v)
	case v.Phase == session.PhasePreparing && v.Turn == 0:
		return "I have not begun with anything here yet. Just tell me what to do"
	case v.Phase == session.PhaseEnded && ending(v) == session.Completed && asking(v) == nil && v.Changed && v.PR != nil:
		return "Done, " + pullRequest(v.PR) + " is up to date"
	case v.Phase == session.PhaseAsking:
		return "I'm waiting to hear which repository to work in. Choose one, or write its name as `OWNER/NAME`"
	}
	return headline(v)
}

// sentence writes facts as one, or as nothing when there are none.
func sentence(facts []string) string {
	if len(facts) == 0 {
		return "Nothing was spent yet."
	}
	return strings.Join(facts, ", ") + "."
}

// headline says the state in a few words, without a full stop.
func headline(v session.View) string {
	switch v.Phase {
	case session.PhaseAsking:
		return "Waiting to hear which repository is meant"
	case session.PhaseQueued:
		return queued(v.Place)
	case session.PhasePreparing:
		return "Setting up the sandbox"
	case session.PhaseWorking:
		return working(v.Doing)
	case session.PhaseStopping:
		return "Stopping"
	case session.PhasePublishing:
		return "Pushing the work"
	case session.PhaseEnded:
		return ended(v)
	}
	return "Getting ready"
}

func queued(place int) string {
	if place <= 1 {
		return "Next in line for a sandbox"
	}
	return fmt.Sprintf("Waiting for a sandbox, number %d in line", place)
}

func working(doing string) string {
	if doing = phrase(doing, 120); doing != "" {
		return "Working: " + doing
	}
	return "Working"
}

func ended(v session.View) string {
	switch ending(v) {
	case session.Completed:
		return completed(v)
	case session.Stopped:
		return "Stopped"
	case session.Stuck:
		return "Stuck, so I stopped"
	case session.TimedOut:
		return "Out of time"
	case session.Stalled:
		return "Nothing moved any more, so I stopped"
	case session.Spent:
		return outOf(v)
	case session.Refused:
		return "The model said no"
	case session.Unreachable:
		return "The model could not be reached"
	case session.Crashed:
		return "Something broke on the way"
	}
	return "Ended"
}

// outOf says which budget is used up.
func outOf(v session.View) string {
	of := "this turn"
	switch v.Outcome.Limit {
	case session.PersonLimit:
		of = "one person for today"
	case session.DayLimit:
		of = "today"
	}
	if paused(v) {
		return "Paused, as the budget of " + of + " is used up"
	}
	return "The budget of " + of + " is used up"
}

func completed(v session.View) string {
	switch {
	case asking(v) != nil:
		return "Waiting for an answer"
	case !v.Changed:
		return "Done, and no file had to change"
	case v.PR == nil:
		return "Done, the work is pushed"
	case v.PR.Draft:
		return fmt.Sprintf("Done, draft pull request #%d is up to date", v.PR.Number)
	}
	return fmt.Sprintf("Done, pull request #%d is up to date", v.PR.Number)
}

func ending(v session.View) session.Ending {
	if v.Outcome == nil {
		return ""
	}
	return v.Outcome.Ending
}

func failed(v session.View) bool {
	return v.Phase == session.PhaseEnded && ending(v) != session.Completed
}

// moreThan suggests a budget for a turn that used one up.
func moreThan(usd float64) int {
	return min(max(10, 2*int(math.Ceil(usd))), MaxBudget)
}

// Facts are the numbers of a turn, in Markdown, the telling ones first.
func Facts(v session.View) []string {
	var out []string
	if v.Model != "" {
		out = append(out, code(clip(v.Model, 128)))
	}
	if v.Usage.Calls > 0 {
		out = append(out, Count(v.Usage.Calls, "model call"))
	}
	if cost := usd(v.Usage.USD); cost != "" {
		out = append(out, cost)
	}
	if v.Took > 0 {
		out = append(out, took(v.Took))
	}
	return append(out, costs(v)...)
}

// costs are what the box took, and the sums that the turn adds to.
func costs(v session.View) []string {
	var out []string
	if v.Box >= time.Minute {
		out = append(out, "box "+took(v.Box))
	}
	if all := usd(v.All.USD); all != "" && v.Turn > 1 && v.All.USD > v.Usage.USD {
		out = append(out, "this session "+all)
	}
	if v.Today == nil {
		return out
	}
	person, all := of(v.Today.Person, v.Today.PersonMax), of(v.Today.All, v.Today.AllMax)
	if person != "" {
		person += " by who asked"
	}
	if all != "" {
		all += " by all"
	}
	switch {
	case person != "" && all != "":
		return append(out, "today "+person+" and "+all)
	case person+all != "":
		return append(out, "today "+person+all)
	}
	return out
}

// of writes what is spent of what may be, and nothing for neither.
func of(spent, may float64) string {
	switch {
	case may > 0:
		return fmt.Sprintf("$%.2f of $%.2f", spent, may)
	case spent > 0:
		return usd(spent)
	}
	return ""
}

// Count is so many of a thing, whose plural ends in an s.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// usd writes money, and nothing for none.
func usd(amount float64) string {
	switch {
	case !(amount > 0):
		return ""
	case amount < 0.01:
		return "under $0.01"
	}
	return fmt.Sprintf("$%.2f", amount)
}

// took writes how long something lasted, as exactly as people care.
func took(d time.Duration) string {
	seconds, minutes := int(d.Round(time.Second).Seconds()), int(d.Round(time.Minute).Minutes())
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
}

// link is a Markdown link, or just its text when the address would break it.
func link(text, url string) string {
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") || strings.ContainsAny(url, " ()<>[]\\\"'`\t\n\r") {
		return text
	}
	return "[" + text + "](" + url + ")"
}

// Preview leads to what the agent shows, in Markdown without a full stop; empty:
// it shows nothing.
func Preview(v session.View) string {
	if v.Preview == nil {
		return ""
	}
	return link("Preview", v.Preview.URL) + " until " + v.Preview.Until.UTC().Format("15:04 UTC") + " at most"
}
