package broker

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// errHello stops the handshake when what we want of it is known.
var errHello = errors.New("the greeting is read")

// readHello reads the beginning of a TLS connection up to the host that the
// client asks for, and returns it with all the bytes that were read. The
// handshake is that of the standard library, which is left before it answers:
// there is no parser here that could understand a greeting otherwise.
func readHello(r io.Reader) (host string, read []byte, err error) {
	ear := &ear{from: io.LimitReader(r, maxHello)}
	server := tls.Server(ear, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			host = hello.ServerName
			return nil, errHello
		},
	})
	if err = server.Handshake(); errors.Is(err, errHello) {
		return host, ear.heard.Bytes(), nil
	}
	return "", ear.heard.Bytes(), fmt.Errorf("read the greeting: %w", err)
}

// maxHello is far more than any greeting: a large one has 2 KiB.
const maxHello = 64 << 10

// ear is a connection that hears, remembers what it heard, and says nothing. Of
// net.Conn it has what a handshake without deadlines calls.
type ear struct {
	net.Conn
	from  io.Reader
	heard bytes.Buffer
}

func (e *ear) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	e.heard.Write(p[:n])
	return n, err
}

func (e *ear) Write(p []byte) (int, error) { return len(p), nil }
func (e *ear) Close() error                { return nil }

// checkHello refuses a tunnel whose greeting is for another host than the one
// that was asked for: one front end often serves many. To an address a client
// sends no name.
func checkHello(t target, host string) error {
	want := t.host
	if t.addr.IsValid() {
		want = ""
	}
	if strings.EqualFold(host, want) {
		return nil
	}
	return refuse(http.StatusForbidden, codeHello, "a tunnel to %s is for that host only", t.host).
		because(fmt.Errorf("the greeting is for %s", clip(host)))
}

// unrecognised is TLS for "there is no such name here", and fatal.
const unrecognised = "\x15\x03\x03\x00\x02\x02\x70"
