package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestListenersAreBounded: where ship listens, nobody can send a head without an
// end, or hold a connection by sending half of one.
func TestListenersAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.start()
	r.await("the broker's door", patience, func() bool { return brokerSocket(r.dir) != "" })
	var wg sync.WaitGroup
	for network, address := range map[string]string{"tcp": r.addr, "unix": brokerSocket(r.dir)} {
		wg.Go(func() { endlessHead(t, network, address) })
		wg.Go(func() { halfHead(t, network, address) })
	}
	wg.Wait()
	r.stop()
}

// brokerSocket is where boxes of this machine reach the broker; empty while it is
// not there.
func brokerSocket(dir string) (path string) {
	_ = filepath.WalkDir(filepath.Join(dir, "data"), func(at string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "broker.sock" {
			path = at
		}
		return nil
	})
	return path
}

// endlessHead sends headers until it is refused.
func endlessHead(t *testing.T, network, address string) {
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n")
	line := "X-Long: " + strings.Repeat("x", 1000) + "\r\n"
	for sent := 0; sent < 1<<20; sent += len(line) {
		if _, err := io.WriteString(conn, line); err != nil {
			break
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return // refused while we went on sending
	}
	if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s: a head of a megabyte: %v, %v", address, answer, err)
	}
}

// halfHead waits until it is hung up on.
func halfHead(t *testing.T, network, address string) {
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost:")
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("%s: half a head: %v, want the end", address, err)
	}
}
