package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// chunkRunes is how much of a text one chunk of the stream carries: small, so
// that a reader who relies on large chunks is found out.
const chunkRunes = 24

// stream writes one reply as server-sent events.
type stream struct {
	w    http.ResponseWriter
	r    *http.Request
	conv Conversation
}

func newStream(w http.ResponseWriter, r *http.Request, c Conversation) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	return &stream{w: w, r: r, conv: c}
}

func (s *stream) play(reply Reply) {
	s.text(reply)
	switch reply.fault {
	case hangsInside:
		<-s.r.Context().Done()
		return
	case cutsInside:
		// The server drops the connection without the final chunk.
		panic(http.ErrAbortHandler)
	}
	s.calls(reply)
	s.chunk(reply, map[string]any{}, reply.finish())
	s.event(map[string]any{
		"id": s.id(), "object": "chat.completion.chunk", "model": s.conv.Model,
		"choices": []any{}, "usage": reply.Usage.wire(),
	})
	fmt.Fprint(s.w, "data: [DONE]\n\n")
	s.flush()
}

func (s *stream) text(reply Reply) {
	s.chunk(reply, map[string]any{"role": "assistant", "content": ""}, "")
	for _, piece := range pieces(reply.Text) {
		s.chunk(reply, map[string]any{"content": piece}, "")
	}
}

// calls sends each call as providers do: the name first, then its arguments
// piece by piece.
func (s *stream) calls(reply Reply) {
	for i, c := range reply.Calls {
		s.chunk(reply, delta(i, map[string]any{"name": c.Tool, "arguments": ""}, c.id), "")
		for _, piece := range pieces(c.arguments()) {
			s.chunk(reply, delta(i, map[string]any{"arguments": piece}, ""), "")
		}
	}
}

func delta(index int, function map[string]any, id string) map[string]any {
	call := map[string]any{"index": index, "function": function}
	if id != "" {
		call["id"], call["type"] = id, "function"
	}
	return map[string]any{"tool_calls": []any{call}}
}

func (s *stream) chunk(reply Reply, delta map[string]any, finish string) {
	if !s.pause(reply.Pause) {
		return
	}
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	s.event(map[string]any{
		"id": s.id(), "object": "chat.completion.chunk", "model": s.conv.Model,
		"choices": []any{choice},
	})
}

// pause waits, and reports false when the reader has left.
func (s *stream) pause(d time.Duration) bool {
	if d <= 0 {
		return s.r.Context().Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-s.r.Context().Done():
		return false
	}
}

func (s *stream) id() string { return "chatcmpl-" + s.conv.Digest }

func (s *stream) event(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		// Only maps and strings come here; they always marshal.
		panic(err)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", b)
	s.flush()
}

func (s *stream) flush() {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// pieces splits a text into chunks of chunkRunes.
func pieces(text string) []string {
	var out []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(chunkRunes, len(runes))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}
