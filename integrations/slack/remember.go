package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"ship/bot"
	"ship/session"
)

// actionRemember has the repository that was just chosen taken for all that is
// asked in the channel without one. It is the button's value.
const actionRemember = "ship_remember"

const (
	// maxRecent repositories of a person are remembered, the newest, for keepRecent
	// from the last change.
	maxRecent  = 10
	keepRecent = 180 * 24 * time.Hour
	// swaps bounds how often a change is overtaken by others.
	swaps = 20
)

// errOvertaken: others were always faster.
var errOvertaken = errors.New("others kept changing it")

// Words that only mean something in Slack, where there are channels.
var (
	rememberWords = regexp.MustCompile("(?i)^(?:please\\s+)?remember\\s+`?(?:https?://[^\\s/]+/)?([a-z0-9][a-z0-9._-]{0,99}/[a-z0-9._-]{1,100}?)`?/?\\s*[.!]?$")
	forgetWords   = regexp.MustCompile(`(?i)^(?:please\s+)?forget\s*[.!]?$`)
)

// parse is what a text asks for: what it does everywhere, or to remember or
// forget a repository, which is Remember without one.
func parse(text string) bot.Command {
	trimmed := strings.TrimSpace(text)
	if m := rememberWords.FindStringSubmatch(trimmed); m != nil {
		return bot.Command{Verb: session.Remember, Text: m[1]}
	}
	if forgetWords.MatchString(trimmed) {
		return bot.Command{Verb: session.Remember}
	}
	return bot.ParseText(aligned(text))
}

// nameRemember is the block in which that is offered. It stays when what else can
// be pressed in a message is taken off.
const nameRemember = "remember"

// rememberOffer offers to remember the repository that a request was given in
// answer to a question, for the channel; nothing: it answered another.
func (w *work) rememberOffer(question string, r *session.Request) []api.Block {
	if question != nameRepo || r == nil || r.Repo == "" {
		return nil
	}
	return []api.Block{api.NewActionBlock(blockID(w.thread.team, nameRemember), rememberButton(r.Repo))}
}

// nameIn is the name of the block in which a button was pressed.
func nameIn(pressed string) string {
	at, _ := parseRef(pressed) // none that cannot be read
	return at.name
}

// rememberButton offers to remember a repository for the channel.
func rememberButton(repo string) api.BlockElement {
	return api.NewButtonBlockElement(actionRemember, repo, words("Remember for this channel"))
}

// rememberRepo keeps a repository for the channel, or forgets the one that is kept.
// To have it kept, one needs the right to work there. Done twice, it is the
// same.
func (w *work) rememberRepo(ctx context.Context, r session.Request, m member) (session.Admission, error) {
	if strings.TrimSpace(r.Text) == "" {
		return w.forget(ctx)
	}
	p, err := w.gate.Pass(ctx, m.Asker, r.Text, "")
	switch {
	case err != nil:
		return session.Admission{}, fmt.Errorf("ask what they may do in %s: %w", r.Text, err)
	case p.Refusal != "":
		return session.Admission{Refusal: p.Refusal, Stranger: p.Stranger, By: p.By}, nil
	}
	if err := w.keep(ctx, keptRepo{p.Repo.Name}); err != nil {
		return session.Admission{}, err
	}
	return session.Admission{By: p.By, Note: fmt.Sprintf(
		"From now on I take `%s` for what is asked in this channel without a repository. Mention me and say `forget` to undo that.", p.Repo.Name)}, nil
}

func (w *work) forget(ctx context.Context) (session.Admission, error) {
	was, err := w.remembered(ctx)
	if err != nil {
		return session.Admission{}, err
	}
	if was == "" {
		return session.Admission{Note: "I remember no repository for this channel. Mention me and say `remember OWNER/NAME` to have me take one."}, nil
	}
	if err := w.keep(ctx, keptRepo{}); err != nil {
		return session.Admission{}, err
	}
	return session.Admission{Note: "Forgotten. When something is asked in this channel without a repository, I go by my settings again, or ask."}, nil
}

// keptRepo is what is remembered for a channel.
type keptRepo struct {
	Repo string `json:"r"`
}

func (w *work) channelRecord() string {
	return "slack.channel." + w.thread.team + "." + w.thread.channel
}

// keep remembers a repository, or none, for the channel for good.
func (w *work) keep(ctx context.Context, k keptRepo) error {
	var value []byte
	if k.Repo != "" {
		value, _ = json.Marshal(k) // a string can be encoded
	}
	err := w.alter(ctx, w.channelRecord(), 0, func([]byte) []byte { return value })
	if err != nil {
		return fmt.Errorf("remember the channel's repository: %w", err)
	}
	return nil
}

// remembered is the repository that is kept for the channel; empty: none.
func (w *work) remembered(ctx context.Context) (string, error) {
	value, _, err := w.vault.Load(ctx, w.channelRecord())
	if err != nil {
		return "", fmt.Errorf("look up the channel's repository: %w", err)
	}
	var k keptRepo
	if json.Unmarshal(value, &k) != nil { // none, or one that cannot be read, which is asked for anew
		return "", nil
	}
	return k.Repo, nil
}

func (w *work) recentRecord(m member) string { return "slack.recent." + w.thread.team + "." + m.ID }

// recent are the repositories in which somebody had us work of late, the newest
// first. Without them the question can be asked all the same.
func (w *work) recent(ctx context.Context, m member) []string {
	value, _, err := w.vault.Load(ctx, w.recentRecord(m))
	if err != nil {
		w.app.log.WarnContext(ctx, "somebody's recent repositories were not found", "session", string(w.job.State.ID), "err", err)
	}
	return parseRecent(value)
}

func parseRecent(value []byte) []string {
	var names []string
	if json.Unmarshal(value, &names) != nil {
		return nil
	}
	return names
}

// noteRecent puts a repository first among somebody's. Only convenience is lost
// if it fails.
func (w *work) noteRecent(ctx context.Context, m member, repo string) {
	err := w.alter(ctx, w.recentRecord(m), keepRecent, func(old []byte) []byte {
		names := parseRecent(old)
		if len(names) > 0 && names[0] == repo {
			return old
		}
		names = slices.DeleteFunc(names, func(n string) bool { return strings.EqualFold(n, repo) })
		names = append([]string{repo}, names...)
		value, _ := json.Marshal(names[:min(len(names), maxRecent)]) // strings can be encoded
		return value
	})
	if err != nil {
		w.app.log.WarnContext(ctx, "somebody's repository was not noted", "session", string(w.job.State.ID), "err", err)
	}
}

// alter replaces what is under a name: the same leaves it alone, nothing removes
// it. change may be called again.
func (w *work) alter(ctx context.Context, name string, ttl time.Duration, change func(old []byte) []byte) error {
	for range swaps {
		old, version, err := w.vault.Load(ctx, name)
		if err != nil {
			return err
		}
		value := change(old)
		if bytes.Equal(value, old) {
			return nil
		}
		if swapped, err := w.vault.Swap(ctx, name, version, value, ttl); err != nil || swapped {
			return err
		}
	}
	return errOvertaken
}
