package slack

import (
	"context"

	api "github.com/slack-go/slack"
)

// eventType marks the metadata of messages of ours.
const eventType = "ship_report"

// metadata carries the id under which a message was decided.
func metadata(id string) api.SlackMetadata {
	return api.SlackMetadata{EventType: eventType, EventPayload: map[string]any{"outbox_id": id}}
}

// post puts a message into the thread, once per id, and returns what names it.
// Performed twice: when it may have been posted before, or when it cannot be
// known whether it just was, the thread is read for the id.
func (w *work) post(ctx context.Context, p Priority, id string, m post) (ts string, err error) {
	return "", errPending
}

// update changes a message of ours. Performed twice, it is the same.
func (w *work) update(ctx context.Context, p Priority, ts string, m post) error { return errPending }
