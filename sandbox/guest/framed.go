package guest

import (
	"bufio"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// A connection to a port of the box may lead through proxies that let nothing
// but WebSockets through, and that do not carry the end of one direction alone.
// Then it travels in WebSocket messages (RFC 6455): binary ones hold its bytes,
// and an empty one says that no more will come from that side.

// The parts of a frame's first two bytes that matter here.
const (
	frameFinal  = 0x80
	frameMasked = 0x80
	frameBinary = 0x2
	frameClose  = 0x8
)

// maxFrame is how many bytes one frame carries at most when we send it. A
// frame that comes in is read piece by piece, whatever its size.
const maxFrame = 32 << 10

var errFrame = errors.New("what came is not a frame that was agreed on")

// framed is a connection within a WebSocket.
type framed struct {
	net.Conn
	in *bufio.Reader
	// mask: a client hides its bytes from caches on the way.
	mask bool

	// What is left of the frame that is being read. Only Read touches them.
	left  uint64
	key   [4]byte
	keyed bool
	at    int
	ended bool

	mu   sync.Mutex
	done bool // guarded by mu: CloseWrite was called
}

// Read implements net.Conn. It is called by one goroutine at a time, as that
// of a stream is.
func (c *framed) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for c.left == 0 {
		if c.ended {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n, err := c.in.Read(p[:min(uint64(len(p)), c.left)])
	c.left -= uint64(n)
	if c.keyed {
		for i := range p[:n] {
			p[i] ^= c.key[(c.at+i)%4]
		}
		c.at = (c.at + n) % 4
	}
	return n, cut(err)
}

// next reads the head of a frame.
func (c *framed) next() error {
	var head [2]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return cut(err)
	}
	if err := c.length(head[1] &^ frameMasked); err != nil {
		return err
	}
	c.keyed, c.at = head[1]&frameMasked != 0, 0
	if c.keyed {
		if _, err := io.ReadFull(c.in, c.key[:]); err != nil {
			return cut(err)
		}
	}
	switch opcode := head[0] &^ frameFinal; {
	case opcode == frameClose, opcode == frameBinary && c.left == 0:
		c.left, c.ended = 0, true
	case opcode != frameBinary || head[0]&frameFinal == 0:
		return errFrame
	}
	return nil
}

func (c *framed) length(short byte) error {
	var long [8]byte
	size := map[byte]int{126: 2, 127: 8}[short]
	if size == 0 {
		c.left = uint64(short)
		return nil
	}
	if _, err := io.ReadFull(c.in, long[8-size:]); err != nil {
		return cut(err)
	}
	c.left = binary.BigEndian.Uint64(long[:])
	if c.left > 1<<62 {
		return errFrame
	}
	return nil
}

// cut is the error of a stream that ended without saying so.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Write implements net.Conn.
func (c *framed) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return 0, net.ErrClosed
	}
	written := 0
	for len(p) > 0 {
		part := p[:min(len(p), maxFrame)]
		if err := c.send(part); err != nil {
			return written, err
		}
		written += len(part)
		p = p[len(part):]
	}
	return written, nil
}

// CloseWrite tells the other side that no more will come. Twice is once.
func (c *framed) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return nil
	}
	c.done = true
	return c.send(nil)
}

func (c *framed) send(part []byte) error {
	frame := make([]byte, 0, len(part)+14)
	var masked byte
	if c.mask {
		masked = frameMasked
	}
	frame = append(frame, frameFinal|frameBinary)
	if len(part) < 126 {
		frame = append(frame, masked|byte(len(part)))
	} else {
		frame = append(frame, masked|126)
		frame = binary.BigEndian.AppendUint16(frame, uint16(len(part)))
	}
	if c.mask {
		var key [4]byte
		_, _ = rand.Read(key[:]) // never fails
		frame = append(frame, key[:]...)
		for i, b := range part {
			frame = append(frame, b^key[i%4])
		}
	} else {
		frame = append(frame, part...)
	}
	_, err := c.Conn.Write(frame)
	return err
}

// websocketKey is the proof in the handshake that the other side knows what a
// WebSocket is (RFC 6455, 4.2.2).
func websocketKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// askFramed turns a request into one for a WebSocket.
func askFramed(request *http.Request) {
	request.Method = http.MethodGet
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails
	request.Header.Set("Upgrade", "websocket")
	request.Header.Set("Sec-WebSocket-Version", "13")
	request.Header.Set("Sec-WebSocket-Key", base64.StdEncoding.EncodeToString(key[:]))
}

// grantedFramed checks the answer to askFramed.
func grantedFramed(request *http.Request, response *http.Response) error {
	want := websocketKey(request.Header.Get("Sec-WebSocket-Key"))
	if got := response.Header.Get("Sec-WebSocket-Accept"); got != want {
		return fmt.Errorf("the handshake of the WebSocket: %w", errFrame)
	}
	return nil
}
