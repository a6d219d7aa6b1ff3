package github

import (
	"fmt"
	"regexp"

	"ship/bot"
	"ship/session"
)

// checkName is the name of ship's check runs.
const checkName = "ship"

// The buttons of a check run.
const (
	actionStop  = "stop"
	actionRetry = "retry"
	actionReady = "ready"
)

// verbOf says what a button asks for; empty for one that is not ours.
func verbOf(button string) session.Verb {
	switch button {
	case actionStop:
		return session.Stop
	case actionRetry:
		return session.Retry
	case actionReady:
		return session.Ready
	}
	return ""
}

// validSession is what a session's id may look like.
var validSession = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,127}$`)

// checkRun: somebody pressed a button of our check run, or GitHub's "Re-run".
func checkRun(r *Receiver, guid string, p payload) (string, []session.Delivery, error) {
	verb := session.Retry
	switch p.action {
	case "rerequested":
	case "requested_action":
		verb = verbOf(text(p.requested.get("identifier")))
	default:
		return outcomeIgnoredAction, nil, nil
	}
	if p.checkRun.get("app.id").Int() != r.appID || text(p.checkRun.get("name")) != checkName {
		return outcomeNotOurs, nil, nil
	}
	if verb == "" {
		return outcomeNoCommand, nil, nil
	}
	if why := p.unwanted(r.appID, p.requested); why != "" {
		return why, nil, nil
	}
	id, thread, err := p.checked()
	if err != nil || id == "" {
		return outcomeNotOurs, nil, err
	}
	return r.pressed(p, guid, verb, id, thread)
}

func (r *Receiver) pressed(p payload, guid string, verb session.Verb, id session.ID, t thread) (string, []session.Delivery, error) {
	run, err := positive(p.checkRun.get("id"))
	if err != nil {
		return "", nil, err
	}
	by, err := p.person(r.noreply)
	if err != nil {
		return "", nil, err
	}
	a := act{
		thread: t, ref: ref{kind: refCheck, id: run}, by: by,
		id:      "gh-k-" + guid,
		content: "check:" + guid,
	}
	// A run that was settled is settled at a time of its own, so the same
	// button after the next turn is another act. While it is in progress
	// nothing tells two presses apart but the delivery.
	if done := moment(p.checkRun.get("completed_at")); !done.IsZero() {
		a.id = fmt.Sprintf("gh-k%d-%s-%d", run, verb, done.Unix())
		a.content = fmt.Sprintf("check:%d:%s:%s:%d", run, verb, by.Login, done.Unix())
	}
	deliveries := a.deliver(guid, []bot.Command{{Verb: verb}})
	for i := range deliveries {
		deliveries[i].Session = id
	}
	return outcomeAccepted, deliveries, nil
}

// checked reads whose check run it is, and where people speak about it. Only
// our app can have written the external id, yet one of another repository is
// not believed. The id is empty when it belongs to no session here.
func (p payload) checked() (session.ID, thread, error) {
	id := session.ID(text(p.checkRun.get("external_id")))
	r, err := p.repo()
	if err != nil || !validSession.MatchString(string(id)) {
		return "", thread{}, err
	}
	repoID, number, native := sessionThread(id)
	if native && repoID != r.id {
		return "", thread{}, nil
	}
	pull := p.checkRun.get("pull_requests").Get("0.number")
	if pull.Int() > 0 {
		t, err := p.thread(pull, true)
		return id, t, err
	}
	if !native || number > 1<<31-1 {
		return "", thread{}, nil
	}
	return id, thread{repo: r, number: int(number)}, nil
}

// pullClosed: a pull request that ship opened was closed or merged. Of others
// no session needs to know, and none must come into being for it.
func pullClosed(r *Receiver, guid string, p payload) (string, []session.Delivery, error) {
	if p.action != "closed" {
		return outcomeIgnoredAction, nil, nil
	}
	if p.installation.get("id").Int() <= 0 {
		return outcomeNoInstallation, nil, nil
	}
	where, err := p.repo()
	if err != nil {
		return "", nil, err
	}
	id := owner(where, pullRef{
		branch:   text(p.pull.get("head.ref")),
		headRepo: p.pull.get("head.repo.id").Int(),
		body:     text(p.pull.get("body")),
		byBot:    text(p.pull.get("user.type")) == "Bot",
	})
	if id == "" {
		return outcomeNotOurs, nil, nil
	}
	why := "closed"
	if p.pull.get("merged").Bool() {
		why = "merged"
	}
	pull, closed := p.pull.get("id").Int(), moment(p.pull.get("closed_at"))
	return outcomeAccepted, []session.Delivery{{
		Session: id,
		Keys:    []string{"gh:" + guid, fmt.Sprintf("gh:closed:%d:%d", pull, closed.Unix())},
		Keep:    keepKeys,
		Event: session.Event{
			V: session.EventVersion, Kind: session.Closed, Delivery: guid, Closed: why,
			PR: int(p.pull.get("number").Int()), Key: text(p.pull.get("node_id")),
		},
	}}, nil
}
