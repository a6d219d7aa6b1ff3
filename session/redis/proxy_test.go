package redis_test

import (
	"bytes"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"ship/session/redis/redistest"
)

// proxy stands between a store and its server, loses answers, and pretends that
// the server still loads its data.
type proxy struct {
	t        testing.TB
	listener net.Listener
	upstream string
	lose     atomic.Int32 // how many of the next answers are lost
	loading  atomic.Int32 // how many of the next PINGs are refused
	conns    sync.WaitGroup
}

func newProxy(t testing.TB, srv *redistest.Server) *proxy {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(srv.Dir(), "p"))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: l, upstream: srv.Socket()}
	p.conns.Go(p.accept)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		p.conns.Wait()
	})
	return p
}

func (p *proxy) URL() string { return "unix://" + p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("unix", p.upstream)
		if err != nil {
			p.t.Error(err)
			return
		}
		p.conns.Go(func() { p.copy(client, server, false) })
		p.conns.Go(func() { p.copy(server, client, true) })
	}
}

// copy ends both connections when one of them ends, or when an answer is lost.
func (p *proxy) copy(from, to net.Conn, answers bool) {
	defer func() { _, _ = from.Close(), to.Close() }() // the other direction did it, or will
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if answers && n > 0 && p.lose.Add(-1) >= 0 {
			return
		}
		if !answers && bytes.Contains(buf[:n], []byte("ping")) && p.loading.Add(-1) >= 0 {
			if _, err := from.Write([]byte("-LOADING Redis is loading the dataset in memory\r\n")); err != nil {
				return
			}
			continue
		}
		if _, werr := to.Write(buf[:n]); werr != nil || err != nil {
			return
		}
	}
}

func (p *proxy) loseNext(n int32) { p.lose.Store(n) }
