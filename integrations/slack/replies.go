package slack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	api "github.com/slack-go/slack"
)

const (
	// lookBack is how much earlier than an effect was decided its messages are
	// looked for: Slack's clock need not be ours.
	lookBack = 5 * time.Minute
	// maxLook bounds how many messages are looked at for one of ours.
	maxLook = 2000
	// maxPage is how many messages Slack wants to be asked for at once, and
	// maxPages how often it is asked.
	maxPage  = 200
	maxPages = 25
)

// replies are the messages of the thread, the oldest first, with the metadata
// of ours: the one that it began with, and most in all of those since oldest,
// or from the first on if that is empty. Where the thread is yet to begin, they
// are what the channel has.
func (w *work) replies(ctx context.Context, p Priority, oldest string, most int) ([]api.Message, error) {
	var all []api.Message
	seen := map[string]bool{}
	cursor := ""
	for range maxPages {
		page, next, err := w.page(ctx, p, pageOf{cursor, oldest, min(maxPage, most)})
		if err != nil {
			return nil, fmt.Errorf("read the thread: %w", err)
		}
		for _, m := range page { // each begins with the root
			if !seen[m.Timestamp] {
				seen[m.Timestamp] = true
				all = append(all, m)
			}
		}
		if next == "" || next == cursor || len(all) >= most {
			break
		}
		cursor = next
	}
	slices.SortFunc(all, func(a, b api.Message) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	return all[:min(len(all), most)], nil
}

// pageOf is which part of a thread to read.
type pageOf struct {
	cursor, oldest string
	size           int
}

// page reads a part of the thread, or of the channel where there is none yet.
// Slack leaves the metadata out unless it is asked for it.
func (w *work) page(ctx context.Context, p Priority, of pageOf) (messages []api.Message, next string, err error) {
	if w.thread.pending() {
		return w.pageOfChannel(ctx, p, of)
	}
	err = w.app.call(ctx, p, w.call("conversations.replies"), func(ctx context.Context) (err error) {
		messages, _, next, err = w.app.client.GetConversationRepliesContext(ctx, &api.GetConversationRepliesParameters{
			ChannelID: w.thread.channel, Timestamp: w.thread.root, Cursor: of.cursor, Oldest: of.oldest, Limit: of.size,
			Inclusive: true, IncludeAllMetadata: true,
		})
		return err
	})
	return messages, next, err
}

func (w *work) pageOfChannel(ctx context.Context, p Priority, of pageOf) (messages []api.Message, next string, err error) {
	err = w.app.call(ctx, p, w.call("conversations.history"), func(ctx context.Context) error {
		r, err := w.app.client.GetConversationHistoryContext(ctx, &api.GetConversationHistoryParameters{
			ChannelID: w.thread.channel, Cursor: of.cursor, Oldest: of.oldest, Limit: of.size,
			Inclusive: true, IncludeAllMetadata: true,
		})
		if err != nil {
			return err
		}
		messages, next = r.Messages, r.ResponseMetaData.NextCursor
		return nil
	})
	return messages, next, err
}

// posted are the messages of ours that are there since the effect was decided,
// by the ids under which they were: of each the first.
func (w *work) posted(ctx context.Context, p Priority) (map[string]string, error) {
	found, err := w.ours(ctx, p)
	there := map[string]string{}
	for _, m := range found {
		if id := outboxID(m); there[id] == "" {
			there[id] = m.Timestamp
		}
	}
	return there, err
}

// ours are the messages that we posted under an id since the effect was decided,
// the oldest first.
func (w *work) ours(ctx context.Context, p Priority) ([]api.Message, error) {
	self, err := w.app.self(ctx)
	if err != nil {
		return nil, err
	}
	all, err := w.replies(ctx, p, tsOf(w.effect.Since.Add(-lookBack)), maxLook)
	return slices.DeleteFunc(all, func(m api.Message) bool { return outboxID(m) == "" || !self.wrote(m) }), err
}

// wrote: others can put into the metadata of theirs whatever they like.
func (i identity) wrote(m api.Message) bool {
	return m.User != "" && m.User == i.user || m.BotID != "" && m.BotID == i.bot
}

// outboxID is the id under which a message was decided; empty: none.
func outboxID(m api.Message) string {
	if m.Metadata.EventType != eventType {
		return ""
	}
	id, _ := m.Metadata.EventPayload["outbox_id"].(string)
	return id
}

// tsOf is a moment as Slack has it; empty: before there was Slack.
func tsOf(at time.Time) string {
	if at.Unix() <= 0 {
		return ""
	}
	return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
}
