package guest_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHeadIsBounded: what reaches the guest from outside cannot make it keep a
// head without an end.
func TestHeadIsBounded(t *testing.T) {
	t.Parallel()
	_, address := overTCP(t)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: x\r\n")
	line := "X-Long: " + strings.Repeat("x", 1000) + "\r\n"
	for sent := 0; sent < 4<<20; sent += len(line) {
		if _, err := io.WriteString(conn, line); err != nil {
			break
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return // refused while we went on sending
	}
	if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a head of four megabytes: %v, %v", answer, err)
	}
}
