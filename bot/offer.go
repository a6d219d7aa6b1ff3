package bot

import (
	"context"
	"fmt"
	"strings"

	"ship/session"
)

const (
	// maxOffered that a question offers, and maxLooks of those that are looked at
	// for it: each takes some time of the code host's.
	maxOffered = 10
	maxLooks   = 20
)

const (
	which  = "Which repository should I work in? Choose one, or write its name as `OWNER/NAME`."
	closed = "Sorry, there is no repository that this may be about and that you may have me work in. Somebody who may can ask again, or a maintainer can give more access."
)

// noRepository is what somebody is told where there is no repository at all.
const noRepository = "I cannot tell in which repository this is to be done, and there is none that I may work in. Whoever runs me has to give me access to one on the code host, or name one in the section `repositories` of my settings; then ask me again."

// Choose finds the one repository among candidates in which somebody may
// command. With none, the admission says why: it asks which of several is meant,
// or it is a refusal. It only reads.
func (g *Gate) Choose(ctx context.Context, who Asker, candidates []string) (name string, a session.Admission, err error) {
	left, err := g.offer(ctx, who, candidates)
	switch {
	case err != nil:
		return "", session.Admission{}, err
	case len(left.open) == 1:
		return left.open[0], session.Admission{}, nil
	case len(left.open) > 1:
		return "", session.Admission{Question: whichOf(left.open)}, nil
	}
	return "", session.Admission{Refusal: left.Refusal, Stranger: left.Stranger, By: left.By}, nil
}

// offer is what is left to choose from.
type offer struct {
	// open are the repositories in which somebody may command, ten at most.
	open []string
	// Passage says why there is none to choose from.
	Passage
}

// offer finds out in which of some repositories somebody may command, for no
// other is to be named to them.
func (g *Gate) offer(ctx context.Context, who Asker, names []string) (offer, error) {
	none := Passage{Refusal: noRepository}
	var open []string
	for _, name := range names[:min(len(names), maxLooks)] {
		p, err := g.Pass(ctx, who, name, "")
		if err != nil {
			return offer{}, fmt.Errorf("ask whether %s can be chosen: %w", name, err)
		}
		if p.Refusal == "" {
			open = append(open, name)
		}
		if p.Stranger && !none.Stranger {
			none = Passage{Refusal: closed, Stranger: true, By: p.By}
		}
		switch {
		case p.Stranger && p.By.Login == who.ID: // who is nobody on the code host is so everywhere
			none.Refusal = p.Refusal
			return offer{Passage: none}, nil
		case len(open) == maxOffered:
			return offer{open: open}, nil
		}
	}
	if len(open) > 0 {
		return offer{open: open}, nil
	}
	return offer{Passage: none}, nil
}

// whichOf asks in which of some repositories to work.
func whichOf(names []string) *session.Question {
	q := &session.Question{Text: which}
	for _, name := range names {
		q.Choices = append(q.Choices, session.Choice{Label: name, Value: name})
	}
	return q
}

// RepoOf is the repository that a session works in; empty if it has begun with
// none.
func RepoOf(s session.State) string {
	if s.Repo.Key != "" && s.Turns > 0 {
		return s.Repo.Name
	}
	return ""
}

// Elsewhere refuses what a session that has begun cannot do any more: to go on
// in another repository, or to have its pull request target another branch.
// instead is how to begin another session.
func Elsewhere(s session.State, r session.Request, instead string) (refusal string) {
	settled := RepoOf(s)
	switch {
	case settled == "":
		return ""
	case r.Repo != "" && !strings.EqualFold(r.Repo, settled):
		return fmt.Sprintf("We work in `%s` here, and I stay with it until this is done. For `%s`, %s.", settled, r.Repo, instead)
	case r.Branch != "" && s.PR != nil && !s.Closed && r.Branch != s.Base:
		return fmt.Sprintf("The pull request #%d goes into `%s` already. Leave `branch=` out to go on with it.", s.PR.Number, s.Base)
	}
	return ""
}
