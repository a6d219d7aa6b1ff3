package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/session"
	"ship/session/redis"
)

// notes collects what does not hold, for it may yet: what was posted twice around
// a take-over is there for a minute and a half.
type notes struct {
	testing.TB
	all []string
}

func (n *notes) Errorf(format string, args ...any) {
	n.all = append(n.all, fmt.Sprintf(format, args...))
}

// broken notes an invariant that does not hold.
func (l *lab) broken(format string, args ...any) { l.notes.Errorf(format, args...) }

// judge demands what has to hold. If something does not, everything that is left
// to be swept is waited for.
func (l *lab) judge() {
	l.t.Helper()
	l.reap()
	l.check()
	if len(l.notes.all) > 0 && !l.swept() {
		l.within("the sweeps", func() bool { return l.quiet() && l.swept() && l.answered() })
		l.notes.all = nil
		l.check()
	}
	for _, note := range l.notes.all {
		l.t.Errorf("broken: %s", note)
	}
}

// turnsOf is how many turns the session had whose name ends so; -1: there is
// no such session.
func (l *lab) turnsOf(suffix string) int {
	for _, s := range l.states() {
		if strings.HasSuffix(string(s.ID), suffix) {
			return s.Turns
		}
	}
	return -1
}

// check demands what has to hold after every story, whatever went wrong in it.
func (l *lab) check() {
	l.t.Helper()
	for _, th := range l.story.threads {
		th.talk.check(th)
	}
	l.checkWork()
	l.checkPulls()
	l.checkChecks()
	l.checkInboxes()
	l.checkOwners()
	l.checkBoxes()
	for _, a := range l.ambushes {
		a.check()
	}
}

// checkWork: what was asked for is done once, and what was stopped is not.
func (l *lab) checkWork() {
	lines, began, most := map[string]int{}, map[string]int{}, l.mostOften()
	for branch := range l.host.Branches(rigRepo) {
		text, _ := l.host.File(rigRepo, branch, "WORK.md")
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "began: ") {
				if began[line]++; began[line] > max(1, most[wordOf(line)]) {
					l.broken("the agent was asked twice: %s", line)
				}
				continue
			}
			for _, word := range strings.Fields(line) {
				lines[word]++
			}
		}
	}
	for _, th := range l.story.threads {
		for _, a := range th.said() {
			least, often := 0, 0
			if a.manner == work {
				least, often = 1, most[a.word]
			}
			if th.stoppedAfter(a) { // dropped, or stopped with the turn that it was given to
				least = 0
			}
			if n := lines[a.word]; n < least || n > often {
				l.broken("%s (%s) is done %d times", a.word, a.manner, n)
			}
		}
	}
}

// mostOften is how often the agent may have been asked for a thing, by its word:
// once, and once more for each retry since. What a retry takes up is the last
// turn's, whichever that was when it came.
func (l *lab) mostOften() map[string]int {
	most := map[string]int{}
	for _, th := range l.story.threads {
		for _, a := range th.said() {
			most[a.word] = 1 + th.retriedAfter(a)
		}
	}
	return most
}

// wordOf is the word of what was asked, in a line that begins with
// "began: VERB WORD".
func wordOf(line string) string {
	if words := strings.Fields(line); len(words) > 2 {
		return words[2]
	}
	return ""
}

// checkPulls: one draft for each branch, one branch for each session that
// worked, and no other.
func (l *lab) checkPulls() {
	heads, branches := map[string]int{}, l.host.Branches(rigRepo)
	for _, p := range l.host.PullRequests(rigRepo) {
		if heads[p.Head]++; heads[p.Head] > 1 {
			l.broken("%s has %d pull requests", p.Head, heads[p.Head])
		}
		if _, there := branches[p.Head]; !there {
			l.broken("pull request %d has no branch", p.Number)
		}
	}
	owners := map[string]int{"main": 1}
	for _, s := range l.states() {
		if s.Branch != "" {
			owners[s.Branch]++
		}
	}
	for branch := range branches {
		if owners[branch] != 1 || branch != "main" && heads[branch] != 1 {
			l.broken("branch %s has %d sessions and %d pull requests", branch, owners[branch], heads[branch])
		}
	}
}

// checkChecks: each is settled, and there is one of a commit.
func (l *lab) checkChecks() {
	seen := map[string]bool{}
	for _, k := range l.host.Checks(rigRepo, "") {
		if seen[k.SHA] || k.Status != "completed" {
			l.broken("check run %+v", k)
		}
		seen[k.SHA] = true
	}
}

// checkInboxes: what was accepted came to be in an inbox once, and nothing was
// given up.
func (l *lab) checkInboxes() {
	want := l.story.asks(work, wonder, slow, status, halt, retry)
	if n := l.seq(); n != int64(want) {
		l.broken("the inboxes took %d events, and %d things were said", n, want)
	}
	var dead []session.DeadLetter
	l.look(func(ctx context.Context, store *redis.Store) (err error) {
		dead, err = store.DeadLetters(ctx, 100)
		return err
	})
	for _, letter := range dead {
		l.broken("a dead letter of %s: %s", letter.Session, letter.Cause)
	}
}

// checkOwners: one process for each generation of a session.
func (l *lab) checkOwners() {
	owners := map[string][]string{}
	for _, g := range l.ships {
		for i, life := range g.lives {
			name := fmt.Sprintf("%s%d", g.name, i+1)
			for _, generation := range generations(life) {
				if !slices.Contains(owners[generation], name) {
					owners[generation] = append(owners[generation], name)
				}
			}
		}
	}
	if len(owners) == 0 {
		l.broken("the logs tell of no owner")
	}
	for generation, names := range owners {
		if len(names) > 1 {
			l.broken("generation %s has the owners %v", generation, names)
		}
	}
}

// generations are the sessions and generations of which a log tells.
func generations(log *syncBuffer) (all []string) {
	for line := range bytes.Lines([]byte(log.String())) {
		var entry struct {
			Session    string
			Generation int64
		}
		if json.Unmarshal(line, &entry) == nil && entry.Generation > 0 {
			all = append(all, fmt.Sprintf("%s@%d", entry.Session, entry.Generation))
		}
	}
	return all
}

// reap lets time pass for boxes that no session knows: who was stopped or died
// while it made one has left it behind. The next ship that starts finds them.
func (l *lab) reap() {
	l.t.Helper()
	if len(l.strays()) == 0 {
		return
	}
	l.tally.reaped(len(l.strays()))
	l.boxes.Advance(3 * time.Minute) // longer than a box may be on its way to a session
	l.ships[0].stop()
	l.ships[0].up()
	l.within("strays to be reaped", func() bool { return l.ships[0].ready() && len(l.strays()) == 0 })
	l.within("all sessions to come to rest again", func() bool { return l.quiet() && l.answered() })
}

// strays are the boxes that are on record nowhere.
func (l *lab) strays() (ids []string) {
	known := map[string]bool{}
	for _, s := range l.states() {
		known[s.Box] = true
		for _, id := range s.Left {
			known[id] = true
		}
	}
	for _, b := range l.boxes.Boxes() {
		if !known[b.ID] {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// checkBoxes: none is left beyond its time, and none was made carelessly.
func (l *lab) checkBoxes() {
	for _, id := range l.strays() {
		l.broken("the box %s is left, of which nobody knows", id)
	}
	for _, v := range l.boxes.Violations() {
		l.broken("at the provider: %s", v)
	}
}
