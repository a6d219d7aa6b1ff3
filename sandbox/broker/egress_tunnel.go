package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// helloTimeout is how long a client may take to begin TLS.
	helloTimeout = 10 * time.Second
	// endEvery is how often a tunnel asks whether its turn has been ended, which
	// another process may have done.
	endEvery = 15 * time.Second
)

// errEndOfTunnel: the connection was taken over, so there is no way to answer
// any more; whatever else the error is, it is for the log.
var errEndOfTunnel = errors.New("tunnel has ended")

// tunnel joins the box to a host. It carries TLS for that host, and nothing
// else, so that a rule for a host is not one for whatever listens beside it.
func (b *Broker) tunnel(p *passage, host net.Conn) error {
	v := p.visit
	if v.r.Method != http.MethodGet || !strings.EqualFold(v.r.Header.Get("Upgrade"), TunnelProtocol) {
		return refuse(http.StatusBadRequest, codeMalformed, "a tunnel is asked for with Upgrade: %s", TunnelProtocol)
	}
	box, err := takeOver(v)
	if err != nil {
		return fmt.Errorf("take the connection over: %w", err)
	}
	defer func() { _ = box.Close() }()
	t := &tunnel{passage: p, box: box, host: host}
	stop := context.AfterFunc(v.r.Context(), t.cut)
	defer stop()
	err = t.run(b.till)
	if no := asPolicy(err); no != nil {
		no.session, no.turn = v.grant.Session, v.grant.Turn
		b.report(v.r.Context(), no)
	}
	return errors.Join(errEndOfTunnel, err)
}

func asPolicy(err error) *refusal {
	var no *refusal
	if errors.As(err, &no) {
		return no
	}
	return nil
}

// takeOver makes a connection of a request.
func takeOver(v *visit) (net.Conn, error) {
	conn, buffered, err := v.rc.Hijack()
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{}) // the server's limits were for a request
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+TunnelProtocol+"\r\n\r\n")
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	// The server's own reader would end the visit when the box has no more to
	// say, though the host may have.
	early, err := buffered.Peek(buffered.Reader.Buffered())
	return &buffer{Conn: conn, r: io.MultiReader(bytes.NewReader(early), conn)}, err
}

// buffer reads what the server had read already, and then from the connection.
type buffer struct {
	net.Conn
	r io.Reader
}

func (b *buffer) Read(p []byte) (int, error) { return b.r.Read(p) }

// tunnel is a box and a host that were joined.
type tunnel struct {
	*passage
	box, host net.Conn
}

// cut ends both directions.
func (t *tunnel) cut() {
	_ = t.box.Close()
	_ = t.host.Close()
}

// run returns when the host has ended the connection, or it was cut.
func (t *tunnel) run(till *till) error {
	if err := t.greet(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.visit.r.Context())
	var others sync.WaitGroup
	var up error
	others.Go(func() { up = t.send() })
	others.Go(func() { t.watch(ctx, till) })
	_, down := io.Copy(t.box, t.host)
	cancel()
	t.cut()
	others.Wait()
	return errors.Join(policy(down), policy(up))
}

// policy leaves only the errors that are not just a network's.
func policy(err error) error {
	if no := asPolicy(err); no != nil {
		return no
	}
	return nil
}

// send carries what the box says. When it has no more to say, the host may
// still answer.
func (t *tunnel) send() error {
	_, err := io.Copy(t.host, t.box)
	if half, ok := t.host.(interface{ CloseWrite() error }); ok && err == nil {
		return half.CloseWrite()
	}
	t.cut()
	return err
}

// greet lets the client begin, and looks for whom it greets.
func (t *tunnel) greet() error {
	t.visit.tick()
	_ = t.box.SetReadDeadline(time.Now().Add(helloTimeout))
	name, hello, err := readHello(t.box)
	if err != nil && len(hello) == 0 {
		return err // it left
	}
	if err != nil {
		return refuse(http.StatusForbidden, codeHello, "a tunnel carries TLS and nothing else").because(err)
	}
	if err := checkHello(t.to, name); err != nil {
		_ = t.box.SetWriteDeadline(time.Now().Add(helloTimeout))
		_, _ = io.WriteString(t.box, unrecognised)
		return err
	}
	_ = t.box.SetReadDeadline(time.Time{})
	_, err = t.host.Write(hello)
	return err
}

// watch ends the tunnel of a turn that another process has ended.
func (t *tunnel) watch(ctx context.Context, till *till) {
	tick := time.NewTicker(endEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if ended, err := till.ended(ctx, t.visit.grant.account()); err == nil && ended {
			t.visit.cancel(errEnded)
		}
	}
}
