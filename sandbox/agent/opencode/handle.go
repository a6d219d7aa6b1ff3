package opencode

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ship/sandbox"
	"ship/sandbox/agent"
)

// aborting bounds the polite way of an abort, which took 40 ms when measured.
const aborting = 10 * time.Second

// handle speaks with the server of one box.
type handle struct {
	box    sandbox.Box
	setup  agent.Setup
	port   int
	client atomic.Pointer[client]
	// reviving holds one token: only one caller at a time starts a server.
	reviving chan struct{}
	// moves counts the events that show real work. Text that streams in is
	// stored at its end only, so that without these it would look like silence.
	moves atomic.Int64

	mu sync.Mutex
	// read holds what is known of each conversation's finished messages.
	read map[string]*transcript
	// refused are the permissions and questions that were turned down.
	refused map[string]bool
}

var _ agent.Agent = (*handle)(nil)

func newHandle(box sandbox.Box, setup agent.Setup, port int) *handle {
	h := &handle{
		box: box, setup: setup, port: port, reviving: make(chan struct{}, 1),
		read: map[string]*transcript{}, refused: map[string]bool{},
	}
	h.client.Store(newClient(box, port, ""))
	return h
}

// Revive finds the server or starts it.
func (h *handle) Revive(ctx context.Context) (restarted bool, err error) {
	select {
	case h.reviving <- struct{}{}:
		defer func() { <-h.reviving }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	s, err := newServer(h.box, h.setup, h.port)
	if err != nil {
		return false, err
	}
	c, started, err := s.up(ctx)
	if err != nil {
		return false, err
	}
	h.client.Swap(c).http.CloseIdleConnections()
	return started, nil
}

type wireSession struct {
	ID     string     `json:"id"`
	Title  string     `json:"title"`
	Cost   float64    `json:"cost"`
	Tokens wireTokens `json:"tokens"`
	Time   struct {
		Created int64 `json:"created"`
		Updated int64 `json:"updated"`
	} `json:"time"`
}

// Open looks for the oldest session of this title before it makes one. Without
// a title the server would ask a model for one, at our expense.
func (h *handle) Open(ctx context.Context, title string) (string, error) {
	c := h.client.Load()
	var found []wireSession
	q := url.Values{"roots": {"true"}, "search": {title}, "limit": {"1000"}}
	if err := c.get(ctx, "/session?"+q.Encode(), &found); err != nil {
		return "", fmt.Errorf("list sessions: %w", err)
	}
	found = slices.DeleteFunc(found, func(s wireSession) bool { return s.Title != title })
	if len(found) > 0 {
		oldest := slices.MinFunc(found, func(a, b wireSession) int { return int(a.Time.Created - b.Time.Created) })
		return oldest.ID, nil
	}
	var made wireSession
	if err := c.post(ctx, "/session", map[string]string{"title": title}, &made); err != nil {
		return "", fmt.Errorf("make session: %w", err)
	}
	return made.ID, nil
}

type wirePrompt struct {
	MessageID string     `json:"messageID"`
	Model     wireModel  `json:"model"`
	System    string     `json:"system,omitempty"`
	Parts     []wireText `json:"parts"`
}

type wireModel struct {
	ProviderID string `json:"providerID"`
	ModelID    string `json:"modelID"`
}

type wireText struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Text string `json:"text"`
}

// Prompt looks before it sends. The same message and part id sent twice make
// one message and one run while the first is running, but a prompt whose run
// was aborted would run again.
func (h *handle) Prompt(ctx context.Context, conversation string, p agent.Prompt) error {
	if !h.offers(p.Model) {
		// The server would take it, answer 204 and never begin.
		return fmt.Errorf("prompt %s: %w: %s/%s", p.ID, agent.ErrModel, p.Model.Provider, p.Model.Name)
	}
	c, id, at := h.client.Load(), encodeID(p.ID), sessionPath(conversation)
	err := c.get(ctx, at+"/message/"+messagePrefix+id, nil)
	if err == nil {
		return nil
	}
	if !errors.Is(err, agent.ErrUnknown) {
		return fmt.Errorf("look for prompt: %w", err)
	}
	err = c.post(ctx, at+"/prompt_async", wirePrompt{
		MessageID: messagePrefix + id, System: p.System,
		Model: wireModel{ProviderID: providerPrefix + p.Model.Provider, ModelID: p.Model.Name},
		Parts: []wireText{{ID: partPrefix + id, Type: "text", Text: p.Text}},
	}, nil)
	if err != nil {
		return fmt.Errorf("send prompt: %w", err)
	}
	return nil
}

func (h *handle) offers(m agent.Model) bool {
	return slices.ContainsFunc(h.setup.Providers, func(p agent.Provider) bool {
		return p.Name == m.Provider && slices.ContainsFunc(p.Models, func(o agent.Offer) bool {
			return o.Name == m.Name
		})
	})
}

// Abort asks the server; if it does not answer, it ends it with all its tools.
// What is stopped must stop.
func (h *handle) Abort(ctx context.Context, conversation string) error {
	ctx2, cancel := context.WithTimeoutCause(ctx, aborting, errAnswering)
	defer cancel()
	err := h.client.Load().post(ctx2, sessionPath(conversation)+"/abort", nil, nil)
	if err == nil || errors.Is(err, agent.ErrUnknown) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if kerr := h.kill(ctx); kerr != nil {
		return fmt.Errorf("abort: %w", errors.Join(err, kerr))
	}
	return nil
}

func (h *handle) kill(ctx context.Context) error {
	s, err := newServer(h.box, h.setup, h.port)
	if err != nil {
		return err
	}
	rec, err := s.recall(ctx)
	if err != nil {
		return err
	}
	return s.bury(ctx, rec)
}

func sessionPath(conversation string) string { return "/session/" + url.PathEscape(conversation) }
