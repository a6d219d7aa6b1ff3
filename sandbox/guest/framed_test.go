package guest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
)

// pipe are the two ends of a framed connection: the client's and the guest's.
func pipe(t *testing.T) (client, server *framed) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return &framed{Conn: a, in: bufio.NewReader(a), mask: true}, &framed{Conn: b, in: bufio.NewReader(b)}
}

// TestFramed: bytes of every length arrive in both directions, and so does the
// end of one while the other goes on.
func TestFramed(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 125, 126, 127, maxFrame, maxFrame + 1, 3*maxFrame + 7} {
		client, server := pipe(t)
		sent := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		for _, way := range []struct{ from, to *framed }{{client, server}, {server, client}} {
			failed := make(chan error, 1)
			go func() {
				_, err := way.from.Write(sent)
				failed <- errors.Join(err, way.from.CloseWrite(), way.from.CloseWrite())
			}()
			got, err := io.ReadAll(way.to)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("of %d bytes %d came, %v", size, len(got), err)
			}
			if err := <-failed; err != nil {
				t.Errorf("writing %d bytes: %v", size, err)
			}
			if _, err := way.from.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("writing after the end: %v", err)
			}
		}
	}
}

// TestFramedCut: a connection that breaks off has not ended.
func TestFramedCut(t *testing.T) {
	t.Parallel()
	for name, bytes := range map[string]string{
		"nothing": "", "half a head": "\x82", "half a length": "\x82\x7e\x01", "half a key": "\x82\x81ab", "half a message": "\x82\x05abc",
	} {
		conn := &framed{in: bufio.NewReader(bytesReader(bytes))}
		if _, err := io.ReadAll(conn); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func bytesReader(text string) io.Reader { return bytes.NewReader([]byte(text)) }

func TestFramedRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"text": "\x81\x01a", "continuation": "\x80\x01a", "a part": "\x02\x01a", "ping": "\x89\x00",
		"endless": "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xffabc",
	} {
		if _, err := io.ReadAll(&framed{in: bufio.NewReader(bytesReader(text))}); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The example of RFC 6455, 1.3.
func TestWebsocketKey(t *testing.T) {
	t.Parallel()
	if got := websocketKey("dGhlIHNhbXBsZSBub25jZQ=="); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Errorf("the key is %s", got)
	}
}

// FuzzFramed: what comes out of a box is whatever somebody in there likes.
func FuzzFramed(f *testing.F) {
	f.Add([]byte("\x82\x05hello\x82\x00"))
	f.Add([]byte("\x82\x85abcd\x09\x07\x0f\x08\x0e\x88\x00"))
	f.Add([]byte("\x82\x7e\x00\x03abc"))
	f.Add([]byte("\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x03abc"))
	f.Add([]byte("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := io.ReadAll(&framed{in: bufio.NewReader(bytes.NewReader(data))})
		if len(got) > len(data) {
			t.Errorf("%d bytes came out of %d", len(got), len(data))
		}
		if err == nil && len(data) == 0 {
			t.Error("nothing is no end")
		}
	})
}
