package github

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"ship/bot"
	"ship/session"
)

const (
	// keepKeys is longer than the three days in which GitHub redelivers.
	keepKeys = 7 * 24 * time.Hour
	// maxText of an instruction, and maxQuote of what it is about, in bytes.
	maxText  = 32 << 10
	maxQuote = 8 << 10
	// triggerLabel starts a session when an issue gets it.
	triggerLabel = "ship"
)

// act is what one person did, before it is known what they ask for.
type act struct {
	thread thread
	ref    ref
	by     session.Person
	// id and content identify it: in requests, and for the dedupe.
	id, content string
	quote       string
	at          time.Time
}

// deliver makes one delivery of each command. The first has the plain keys,
// so that a redelivery repeats each of them, and none is lost.
func (a act) deliver(guid string, commands []bot.Command) []session.Delivery {
	out := make([]session.Delivery, len(commands))
	for i, c := range commands {
		suffix, idSuffix := "", ""
		if i > 0 {
			suffix, idSuffix = "#"+strconv.Itoa(i), "."+strconv.Itoa(i)
		}
		request := a.request(c)
		request.ID += idSuffix
		out[i] = session.Delivery{
			Session: a.thread.id(),
			Keys:    []string{"gh:" + guid + suffix, "gh:" + a.content + suffix},
			Keep:    keepKeys,
			Event:   session.Event{V: session.EventVersion, Kind: session.Asked, Delivery: guid, Request: &request},
		}
	}
	return out
}

func (a act) request(c bot.Command) session.Request {
	return session.Request{
		ID: a.id, Thread: a.thread.session(), By: a.by, Verb: a.verb(c), Text: bot.Prefix(c.Text, maxText),
		Quote: bot.Prefix(a.quote, maxQuote), Inline: a.ref.kind == refInline, Ref: a.ref.String(),
		Repo: c.Repo, Branch: c.Branch, Model: c.Model, At: a.at,
	}
}

// verb: a bare /ship in a pull request's conversation means "get this
// shippable"; under a line of the diff, and on an issue, "do what this is
// about".
func (a act) verb(c bot.Command) session.Verb {
	switch {
	case c.Verb != "":
		return c.Verb
	case a.thread.pull && a.ref.kind != refInline:
		return session.Finish
	default:
		return session.Instruct
	}
}

// said turns a text that somebody wrote into deliveries.
func (r *Receiver) said(p payload, source part, guid string, describe func(*act)) (string, []session.Delivery, error) {
	if why := p.unwanted(r.appID, source); why != "" {
		return why, nil, nil
	}
	commands := bot.Parse(text(source.get("body")))
	if len(commands) == 0 {
		return outcomeNoCommand, nil, nil
	}
	var a act
	var err error
	if a.by, err = p.person(r.noreply); err != nil {
		return "", nil, err
	}
	describe(&a)
	return outcomeAccepted, a.deliver(guid, commands), nil
}

func issueComment(r *Receiver, guid string, p payload) (string, []session.Delivery, error) {
	if p.action != "created" {
		return outcomeIgnoredAction, nil, nil
	}
	t, err := p.thread(p.issue.get("number"), p.issue.get("pull_request").IsObject())
	if err != nil {
		return "", nil, err
	}
	id, err := positive(p.comment.get("id"))
	if err != nil {
		return "", nil, err
	}
	return r.said(p, p.comment, guid, func(a *act) {
		a.thread, a.ref = t, ref{kind: refComment, id: id}
		a.id, a.content = fmt.Sprintf("gh-c%d", id), fmt.Sprintf("comment:%d", id)
		a.at = moment(p.comment.get("created_at"))
	})
}

func reviewComment(r *Receiver, guid string, p payload) (string, []session.Delivery, error) {
	if p.action != "created" {
		return outcomeIgnoredAction, nil, nil
	}
	t, err := p.thread(p.pull.get("number"), true)
	if err != nil {
		return "", nil, err
	}
	id, err := positive(p.comment.get("id"))
	if err != nil {
		return "", nil, err
	}
	return r.said(p, p.comment, guid, func(a *act) {
		root := id
		if first := p.comment.get("in_reply_to_id").Int(); first > 0 {
			root = first
		}
		a.thread, a.ref = t, ref{kind: refInline, id: id, root: root}
		a.id, a.content = fmt.Sprintf("gh-r%d", id), fmt.Sprintf("review comment:%d", id)
		a.quote = hunk(p.comment)
		a.at = moment(p.comment.get("created_at"))
	})
}

// hunk quotes the lines under which a review comment stands.
func hunk(comment part) string {
	place := text(comment.get("path"))
	line := comment.get("line").Int()
	if line == 0 {
		line = comment.get("original_line").Int()
	}
	if line > 0 {
		place += ":" + strconv.FormatInt(line, 10)
	}
	return strings.ToValidUTF8(place+"\n"+text(comment.get("diff_hunk")), "\uFFFD")
}

func review(r *Receiver, guid string, p payload) (string, []session.Delivery, error) {
	if p.action != "submitted" {
		return outcomeIgnoredAction, nil, nil
	}
	t, err := p.thread(p.pull.get("number"), true)
	if err != nil {
		return "", nil, err
	}
	id, err := positive(p.review.get("id"))
	if err != nil {
		return "", nil, err
	}
	return r.said(p, p.review, guid, func(a *act) {
		a.thread = t
		a.ref = ref{kind: refReview, id: id, node: text(p.review.get("node_id"))}
		a.id, a.content = fmt.Sprintf("gh-v%d", id), fmt.Sprintf("review:%d", id)
		a.at = moment(p.review.get("submitted_at"))
	})
}

// labeled: an issue got the label, which means "do what this is about". The
// label may be taken off and put on again, so the time is part of the key.
func labeled(r *Receiver, guid string, p payload) (string, []session.Delivery, error) {
	if p.action != "labeled" {
		return outcomeIgnoredAction, nil, nil
	}
	if !strings.EqualFold(text(p.label.get("name")), triggerLabel) {
		return outcomeNoCommand, nil, nil
	}
	if why := p.unwanted(r.appID, nil); why != "" {
		return why, nil, nil
	}
	t, err := p.thread(p.issue.get("number"), false)
	if err != nil {
		return "", nil, err
	}
	id, err := positive(p.issue.get("id"))
	if err != nil {
		return "", nil, err
	}
	by, err := p.person(r.noreply)
	if err != nil {
		return "", nil, err
	}
	at := moment(p.issue.get("updated_at"))
	a := act{
		thread: t, ref: ref{kind: refThread}, by: by, at: at,
		id:      fmt.Sprintf("gh-l%d-%d", id, at.Unix()),
		content: fmt.Sprintf("label:%d:%s:%d", id, triggerLabel, at.Unix()),
	}
	return outcomeAccepted, a.deliver(guid, []bot.Command{{Verb: session.Instruct}}), nil
}

func positive(r gjson.Result) (int64, error) {
	if n := r.Int(); n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("id: %w", bot.ErrMalformed)
}
