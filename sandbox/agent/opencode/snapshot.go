package opencode

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"strings"

	"ship/sandbox/agent"
)

// nobody is what the agent hears when it asks for a person. With a message, a
// refusal lets it go on; without one it would end the turn.
const nobody = "Nobody is there to answer. Decide yourself, go on, and say what you decided."

// Snapshot asks for the status first and for the messages after it: what is
// idle then, and finished by messages read later, is finished.
func (h *handle) Snapshot(ctx context.Context, conversation, promptID string) (agent.Snapshot, error) {
	c := h.client.Load()
	statuses, err := c.statuses(ctx)
	if err != nil {
		return agent.Snapshot{}, fmt.Errorf("read status: %w", err)
	}
	if len(statuses) > 0 {
		if err := h.refuse(ctx, c); err != nil {
			return agent.Snapshot{}, err
		}
	}
	t, err := h.follow(ctx, c, conversation, messagePrefix+encodeID(promptID))
	if err != nil {
		return agent.Snapshot{}, fmt.Errorf("read messages: %w", err)
	}
	kids, err := h.children(ctx, c, conversation, t)
	if err != nil {
		return agent.Snapshot{}, fmt.Errorf("read subagents: %w", err)
	}
	s := summarize(t, status(conversation, kids, statuses))
	mark := fnv.New64a()
	t.hash(mark)
	for _, kid := range kids {
		s.Usage = s.Usage.Add(usageOf(kid.transcript.messages))
		kid.transcript.hash(mark)
	}
	fmt.Fprintln(mark, h.moves.Load())
	s.Fingerprint = fmt.Sprintf("%016x", mark.Sum64())
	s.Refused = h.turnedDown()
	return s, nil
}

// status of a family: a subagent that waits for its model makes all wait.
func status(conversation string, kids []child, all map[string]wireStatus) agent.Status {
	out := all[conversation].status()
	for _, kid := range kids {
		s := all[kid.id].status()
		if s.Phase == agent.Retrying || (s.Phase == agent.Busy && out.Phase == agent.Idle) {
			out = s
		}
	}
	return out
}

func (w wireStatus) status() agent.Status {
	switch w.Type {
	case "busy":
		return agent.Status{Phase: agent.Busy}
	case "retry":
		return agent.Status{Phase: agent.Retrying, Attempt: w.Attempt, Message: clip(w.Message, maxError)}
	}
	return agent.Status{Phase: agent.Idle}
}

// summarize applies the rule: a turn is finished when the agent is idle and the
// last message is an answer that is complete or failed. Idle with anything else
// at the end, it was cut.
func summarize(t transcript, st agent.Status) agent.Snapshot {
	s := agent.Snapshot{Status: st, Prompted: t.found, Usage: usageOf(t.messages)}
	for _, m := range t.messages {
		if m.user {
			s.Prompts = append(s.Prompts, promptID(m.id)...)
			continue
		}
		s.Started = true
		s.Calls = append(s.Calls, m.calls...)
		if m.todos != nil {
			s.Todos = m.todos
		}
		if m.text != "" && !m.summary {
			s.Text = m.text
		}
	}
	if !s.Started || st.Phase != agent.Idle {
		return s
	}
	last := t.messages[len(t.messages)-1]
	s.Finished = last.complete()
	s.Cut = !s.Finished
	if s.Finished {
		s.Failure, s.Aborted = last.failure, last.aborted
	}
	return s
}

// promptID is the id of a prompt of ours; none for a message that the agent
// wrote to itself.
func promptID(messageID string) []string {
	id, ours := strings.CutPrefix(messageID, messagePrefix)
	if !ours {
		return nil
	}
	return []string{decodeID(id)}
}

func usageOf(messages []message) agent.Usage {
	var u agent.Usage
	for _, m := range messages {
		u = u.Add(m.usage)
	}
	return u
}

func (t transcript) hash(w hash.Hash) {
	fmt.Fprintln(w, len(t.messages))
	for _, m := range t.messages {
		fmt.Fprintln(w, m.mark)
	}
}

type wireAsk struct {
	ID        string     `json:"id"`
	Questions []struct{} `json:"questions"`
}

// refuse turns down whatever waits for a person, in subagents too.
func (h *handle) refuse(ctx context.Context, c *client) error {
	var permissions, questions []wireAsk
	if err := c.get(ctx, "/permission", &permissions); err != nil {
		return fmt.Errorf("list permissions: %w", err)
	}
	if err := c.get(ctx, "/question", &questions); err != nil {
		return fmt.Errorf("list questions: %w", err)
	}
	for _, p := range permissions {
		body := map[string]string{"reply": "reject", "message": nobody}
		if err := h.answer(ctx, c, "/permission/"+p.ID+"/reply", body); err != nil {
			return err
		}
	}
	for _, q := range questions {
		answers := make([][]string, len(q.Questions))
		for i := range answers {
			answers[i] = []string{nobody}
		}
		body := map[string]any{"answers": answers}
		if err := h.answer(ctx, c, "/question/"+q.ID+"/reply", body); err != nil {
			return err
		}
	}
	return nil
}

// answer replies once. An aborted session leaves entries in the lists that
// nobody takes off any more; their reply is 404, or taken without effect.
func (h *handle) answer(ctx context.Context, c *client, path string, body any) error {
	h.mu.Lock()
	done := h.refused[path]
	h.refused[path] = true
	h.mu.Unlock()
	if done {
		return nil
	}
	err := c.post(ctx, path, body, nil)
	if err != nil && !errors.Is(err, agent.ErrUnknown) {
		h.mu.Lock()
		delete(h.refused, path)
		h.mu.Unlock()
		return fmt.Errorf("turn down a request: %w", err)
	}
	return nil
}

func (h *handle) turnedDown() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.refused)
}
