package e2btest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
)

var discard = log.New(io.Discard, "", 0)

func dialUnix(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
}

// proxy is the way to all ports of all boxes.
func (s *Server) proxy(w http.ResponseWriter, r *http.Request) {
	port := r.Header.Get("E2b-Sandbox-Port")
	s.strike(w, r, "port "+port, s.enter)
}

// enter holds no lock while it passes on: a stream may last.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	id, port := r.Header.Get("E2b-Sandbox-Id"), r.Header.Get("E2b-Sandbox-Port")
	if r.Header.Get("Connect-Timeout-Ms") != "" {
		s.note("a deadline was told to envd")
	}
	s.mu.Lock()
	b := s.find(id)
	if b == nil || b.paused {
		s.mu.Unlock()
		notFound(w, id)
		return
	}
	proxy, envd, traffic := b.proxy, b.envdToken, b.traffic
	s.mu.Unlock()
	switch {
	case port == strconv.Itoa(envdPort) && r.Header.Get("X-Access-Token") != envd:
		writeJSON(w, http.StatusUnauthorized, `{"code":401,"message":"the access token is wrong or missing"}`)
	case port != strconv.Itoa(envdPort) && r.Header.Get("e2b-traffic-access-token") != traffic:
		writeJSON(w, http.StatusForbidden, fmt.Sprintf(`{"sandboxId":%q,"message":"the traffic access token is wrong or missing","code":403}`, id))
	default:
		// The proxy may be about to look whether the request has ended when the
		// answer begins; closed to it then, it would cut the answer off.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	}
}

// notFound is what the proxy says of a box that does not run, whatever became
// of it.
func notFound(w http.ResponseWriter, id string) {
	writeJSON(w, http.StatusBadGateway, fmt.Sprintf(`{"sandboxId":%q,"message":"The sandbox was not found","code":502}`, id))
}

// openDoor serves what boxes find outside.
func (s *Server) openDoor(t testing.TB) (closeDoor func()) {
	t.Helper()
	if s.options.Door == nil {
		return func() {}
	}
	s.door = filepath.Join(s.dir, "door")
	listener, err := net.Listen("unix", s.door)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s.options.Door}
	served := make(chan struct{})
	go func() { _ = server.Serve(listener); close(served) }()
	return func() { _ = server.Close(); <-served }
}
