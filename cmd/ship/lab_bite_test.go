package main

import (
	"fmt"
	"strings"

	"ship/integrations/github/githubtest"
	"ship/sandbox/e2b/e2btest"
)

// bites proves that the lab would notice: it breaks a world in which all is well,
// in one way after the other, and demands that each is found.
func (l *lab) bites() {
	l.t.Helper()
	issue := l.story.threads[0].talk.(*issueTalk).number
	branch, text := l.someWork()
	for _, wrong := range []struct {
		finds string
		do    func()
	}{
		{"2 status comments", func() { l.host.Comment(rigRepo, issue, l.host.BotLogin(), l.sticky(issue)) }},
		{"is done 2 times", func() { l.commit(branch, text+"\n"+text) }},
		{"the agent was asked twice", func() { l.commit(branch, "began: it\nbegan: it\n"+text) }},
		{"has 0 sessions", func() { l.commit("nobodys", "") }},
		{"2 pull requests", func() {
			l.host.CreatePull(rigRepo, githubtest.Pull{User: "mona", Title: "Twin", Head: branch, Draft: true})
		}},
		{"is done 0 times", func() { l.story.threads[0].note(ask{work, "never-heard-of"}) }},
		{"things were said", func() { l.story.threads[1].note(ask{manner: status}) }},
		{"linear's session", func() {
			silent := newLinearTalk(l)
			silent.says("is anybody there?") // and nobody is told
			l.story.threads = append(l.story.threads, &thread{lab: l, talk: silent, name: "silent"})
		}},
		{"final messages", func() { l.story.threads[2].note(ask{manner: status}) }},
		{"has the owners", func() {
			fmt.Fprint(l.ships[0].lives[0], strings.ReplaceAll(l.ships[1].allLives(), `"level"`, `"again"`))
		}},
		{"of which nobody knows", func() { l.boxes.Copy(l.boxes.Boxes()[0].ID, func(*e2btest.Order) {}) }},
	} {
		wrong.do()
		l.notes.all = nil
		l.check()
		if !strings.Contains(strings.Join(l.notes.all, "\n"), wrong.finds) {
			l.t.Errorf("the lab does not notice: %s; it found %q", wrong.finds, l.notes.all)
		}
	}
}

// someWork is a branch of ship's, and what was done there.
func (l *lab) someWork() (branch, text string) {
	l.t.Helper()
	for branch := range l.host.Branches(rigRepo) {
		if text, _ := l.host.File(rigRepo, branch, "WORK.md"); text != "" {
			return branch, text
		}
	}
	l.t.Fatal("no branch holds any work")
	return "", ""
}

func (l *lab) commit(branch, work string) {
	l.t.Helper()
	if _, err := l.host.Commit(rigRepo, branch, map[string]string{"WORK.md": work}, "Not by ship"); err != nil {
		l.t.Fatal(err)
	}
}

// allLives is what all processes of a ship logged.
func (g *gateway) allLives() string {
	var b strings.Builder
	for _, life := range g.lives {
		b.WriteString(life.String())
	}
	return b.String()
}
