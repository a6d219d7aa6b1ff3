package chaos

import (
	"io"
	"net"
	"time"
)

// stream is a connection whose answer comes late, and ends after some bytes. It
// has one reader at a time, as every connection of ours.
type stream struct {
	net.Conn
	left  int
	pause time.Duration
}

// Read brings what is left, and then the end of a connection that was cut.
func (s *stream) Read(p []byte) (int, error) {
	time.Sleep(s.pause) // a network has no context
	s.pause = 0
	if s.left <= 0 {
		_ = s.Close()
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.Conn.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}
