package turn

import (
	"strings"
	"sync"
)

// maxHeld is the longest line, in bytes, of which a stream shows anything but
// the beginning: it has to be held until it has ended.
const maxHeld = 64 << 10

// longLine stands for the rest of a line that is too long to be looked through.
const longLine = "… [the rest of this line was left out]"

// RedactedStream takes secrets out of what comes in pieces: however it is cut,
// what is written on is the same as if it had come at once. A line is held until
// it has ended. Make one with NewRedactedStream. It is safe for concurrent use.
type RedactedStream struct {
	write func(string)

	mu    sync.Mutex
	lines lineRedactor
	held  strings.Builder
	// over: the line is too long, and what comes of it is dropped.
	over bool
}

// NewRedactedStream returns a stream that hands redacted text to write, whole
// lines at a time, from within Write and Close.
func NewRedactedStream(known []string, write func(text string)) *RedactedStream {
	return newStream(newRules(known), write)
}

func newStream(r *rules, write func(text string)) *RedactedStream {
	return &RedactedStream{write: write, lines: lineRedactor{rules: r}}
}

// Write takes a piece. It never fails, and keeps nothing of p.
func (s *RedactedStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		s.take(line)
	}
	return len(p), nil
}

// take adds a piece in which only the last byte may end a line.
func (s *RedactedStream) take(piece string) {
	text, ended := strings.CutSuffix(piece, "\n")
	if room := maxHeld - s.held.Len(); len(text) > room {
		text, s.over = text[:room], true
	}
	s.held.WriteString(text)
	if ended {
		s.flush("\n")
	}
}

// flush ends the line that is held. Where a line is cut, so may be a secret: the
// mark says so to those who look for one.
func (s *RedactedStream) flush(end string) {
	line := s.held.String()
	s.held.Reset()
	if s.over {
		line, s.over = strings.ToValidUTF8(line, "")+longLine, false
	}
	if out := s.lines.next(line + end); out != "" {
		s.write(out)
	}
}

// Close ends the stream: what is held comes out. It may be called twice.
func (s *RedactedStream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.Len() > 0 {
		s.flush("")
	}
	return nil
}
