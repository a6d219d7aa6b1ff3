package opencode

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

const (
	// recent is how many messages a look asks for: enough for the steps between
	// two looks, so that a long turn does not cost its whole length each time.
	recent = 20
	// older is how many are asked for when more is needed.
	older = 100
)

// transcript is what is known of a conversation from a prompt on.
type transcript struct {
	// prompt is the id of the message after which it begins; empty: all.
	prompt string
	// found: the prompt is in the conversation.
	found bool
	// messages after the prompt, oldest first. Never changed in place.
	messages []message
	// settled is how many of them, from the first, cannot change any more.
	settled int
}

// anchor is the last message that need not be read again.
func (t transcript) anchor() string {
	if t.settled > 0 {
		return t.messages[t.settled-1].id
	}
	return t.prompt
}

// extend returns the transcript with what came after the anchor. The newest
// message never counts as settled: an abort may still add its error.
func (t transcript) extend(tail []message) transcript {
	t.messages = slices.Concat(t.messages[:t.settled], tail)
	for t.settled < len(t.messages)-1 && t.messages[t.settled].settled {
		t.settled++
	}
	return t
}

// follow brings the transcript of a conversation up to date.
func (h *handle) follow(ctx context.Context, c *client, conversation, prompt string) (transcript, error) {
	h.mu.Lock()
	t := h.read[conversation]
	h.mu.Unlock()
	if t == nil || t.prompt != prompt || !t.found {
		t = &transcript{prompt: prompt, found: prompt == ""}
	}
	tail, reached, err := c.messagesAfter(ctx, conversation, t.anchor())
	if err != nil {
		return transcript{}, err
	}
	next := *t
	if reached || prompt == "" {
		next.found = true
		next = next.extend(tail)
	} else {
		// The prompt has not arrived, or the agent's memory was put back.
		next = transcript{prompt: prompt}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read[conversation] = &next
	return next, nil
}

// messagesAfter reads pages, newest first, until it comes to the anchor, and
// says whether it did. An empty anchor: all.
func (c *client) messagesAfter(ctx context.Context, conversation, anchor string) (tail []message, reached bool, err error) {
	limit, cursor := recent, ""
	for {
		page, next, err := c.messagePage(ctx, conversation, limit, cursor)
		if err != nil {
			return nil, false, err
		}
		at := slices.IndexFunc(page, func(m message) bool { return m.id == anchor })
		tail = slices.Concat(page[at+1:], tail)
		if at >= 0 {
			return tail, true, nil
		}
		if next == "" || len(page) == 0 {
			return tail, false, nil
		}
		limit, cursor = older, next
	}
}

func (c *client) messagePage(ctx context.Context, conversation string, limit int, cursor string) ([]message, string, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		q.Set("before", cursor)
	}
	var raw json.RawMessage
	header, err := c.do(ctx, exchange{
		method: http.MethodGet, path: sessionPath(conversation) + "/message?" + q.Encode(), out: &raw,
	})
	if err != nil {
		return nil, "", err
	}
	page, err := decodeMessages(raw)
	return page, header.Get("X-Next-Cursor"), err
}

// child is a subagent's session.
type child struct {
	id         string
	transcript transcript
}

// children reads the subagents that this turn has started. Those of earlier
// turns are older than its first answer.
func (h *handle) children(ctx context.Context, c *client, conversation string, t transcript) ([]child, error) {
	first := slices.IndexFunc(t.messages, func(m message) bool { return m.delegates })
	if first < 0 {
		return nil, nil
	}
	var sessions []wireSession
	if err := c.get(ctx, sessionPath(conversation)+"/children", &sessions); err != nil {
		return nil, err
	}
	var kids []child
	for _, s := range sessions {
		if s.Time.Created < t.messages[first].at {
			continue
		}
		kid, err := h.follow(ctx, c, s.ID, "")
		if err != nil {
			return nil, err
		}
		kids = append(kids, child{id: s.ID, transcript: kid})
	}
	return kids, nil
}
