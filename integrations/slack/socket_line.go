package slack

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// maxAtOnce is how many envelopes of one connection are worked on.
	maxAtOnce = 16
	// drain is how long a connection is still read that Slack announced to
	// close: it says so some ten seconds before.
	drain = 20 * time.Second
	// writeTimeout is for one acknowledgement.
	writeTimeout = 5 * time.Second
)

// line is one connection. One goroutine reads it, some work on what was read,
// and one writes.
type line struct {
	socket *Socket
	conn   *websocket.Conn
	slots  chan struct{}
	acks   chan ack
	// leaving is closed when Slack asked for another connection, ended when
	// nothing is left to be done for this one. Then err says why.
	leaving, ended chan struct{}
	err            error
	// greeted is called when Slack says that the connection is there, which then
	// is open.
	greeted func()
	open    bool
}

func newLine(s *Socket, conn *websocket.Conn) *line {
	return &line{
		socket: s, conn: conn, slots: make(chan struct{}, maxAtOnce), acks: make(chan ack, maxAtOnce),
		leaving: make(chan struct{}), ended: make(chan struct{}), greeted: func() {},
	}
}

// run serves a connection to its end. When ctx ends, nothing more is read, and
// what was read is finished.
func (l *line) run(ctx context.Context) {
	defer close(l.ended)
	stop := context.AfterFunc(ctx, func() { _ = l.conn.NetConn().SetReadDeadline(time.Now()) })
	defer stop()
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write()
	}()
	var work sync.WaitGroup
	l.err = l.read(ctx, &work)
	work.Wait()
	close(l.acks)
	<-written
	if l.open {
		l.socket.presence.end(time.Now().Add(-l.socket.silence)) // it may have been dead that long
	}
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = l.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(time.Second)) // it may be gone
	_ = l.conn.Close()                                                                    // Slack would not close first
}

// read takes frames in until there are no more. Its error says why, nil that it
// was to be expected.
func (l *line) read(ctx context.Context, work *sync.WaitGroup) error {
	l.conn.SetPingHandler(func(data string) error {
		l.extend(ctx)
		_ = l.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout)) // reading finds out
		return nil
	})
	for {
		l.extend(ctx)
		_, message, err := l.conn.ReadMessage()
		if err != nil {
			if ctx.Err() != nil || l.left() {
				return nil
			}
			return fmt.Errorf("read from slack: %w", err)
		}
		if err := l.hear(ctx, message, work); err != nil {
			return err
		}
	}
}

// extend gives a connection that lives more time. One that is about to be
// closed, or is to end, gets none.
func (l *line) extend(ctx context.Context) {
	if !l.left() {
		_ = l.conn.SetReadDeadline(time.Now().Add(l.socket.silence)) // reading finds out
	}
	if ctx.Err() != nil {
		_ = l.conn.SetReadDeadline(time.Now())
	}
}

func (l *line) left() bool {
	select {
	case <-l.leaving:
		return true
	default:
		return false
	}
}

// hear acts on one frame.
func (l *line) hear(ctx context.Context, message []byte, work *sync.WaitGroup) error {
	f, err := decode[frame](message)
	switch {
	case err != nil:
		l.socket.reader.log.WarnContext(ctx, "socket mode frame is malformed", "bytes", len(message))
	case f.Type == "hello":
		l.socket.reader.log.InfoContext(ctx, "socket mode connected")
		if !l.open {
			l.open = true
			l.greeted()
		}
	case f.Type == "disconnect":
		return l.leave(f.Reason)
	case f.ID != "":
		l.slots <- struct{}{}
		work.Go(func() {
			defer func() { <-l.slots }()
			if a, taken := l.socket.take(ctx, f); taken {
				l.acks <- a
			}
		})
	}
	return nil
}

// leave does as Slack says: to make room for another connection, or to go.
func (l *line) leave(reason string) error {
	switch reason {
	case "link_disabled", "too_many_websockets":
		return fmt.Errorf("%s: %w", reason, errUnwanted)
	}
	if !l.left() {
		_ = l.conn.SetReadDeadline(time.Now().Add(drain)) // reading finds out
		close(l.leaving)
	}
	return nil
}

// write writes what is to be acknowledged, until that is all. When a connection
// cannot be written to, nor is it worth reading: what is not acknowledged comes
// again.
func (l *line) write() {
	broken := false
	for a := range l.acks {
		if broken {
			continue
		}
		_ = l.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // writing finds out
		if err := l.conn.WriteJSON(a); err != nil {
			broken = true
			_ = l.conn.NetConn().Close() // the reader finds out
		}
	}
}
