package slacktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// How Socket Mode works.
const (
	maxLinks    = 10
	ticketLasts = 30 * time.Second
	pingEvery   = 5 * time.Second
	// maxAck: what is as long is dropped without a word.
	maxAck = 20_000
)

var (
	// errUnanswered: the app took too long.
	errUnanswered = errors.New("not answered in time")
	// errCut: the socket went while an answer was awaited.
	errCut = errors.New("the socket was cut")
)

// links are the open sockets, which share the load.
type links struct {
	mu      sync.Mutex
	tickets map[string]time.Time
	open    []*link
	made    int // ever
	turn    int // of the next delivery
	opened  chan struct{}
	waiting map[string]chan ack
	running sync.WaitGroup
	closed  bool
}

func newLinks() links {
	return links{tickets: map[string]time.Time{}, opened: make(chan struct{}), waiting: map[string]chan ack{}}
}

// link is one socket.
type link struct {
	number int
	conn   *websocket.Conn
	gone   chan struct{}
	write  sync.Mutex
}

// ack is what the app says to an envelope.
type ack struct {
	EnvelopeID string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
}

// openConnection hands out an address that is good for one socket.
func (s *Server) openConnection(args) (object, error) {
	if s.tokenGone == "account_inactive" {
		return nil, refuse("account_inactive")
	}
	ticket := random(16)
	s.links.mu.Lock()
	defer s.links.mu.Unlock()
	s.links.tickets[ticket] = time.Now().Add(ticketLasts)
	return object{"url": "ws" + strings.TrimPrefix(s.URL, "http") + "/link/?ticket=" + ticket + "&app_id=" + s.appID}, nil
}

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if s.Strike(w, r, "socket") {
		return
	}
	if !s.links.admit(r.URL.Query().Get("ticket")) {
		http.Error(w, "the ticket is used or too old", http.StatusUnauthorized)
		return
	}
	defer s.links.running.Done()
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it was answered
	}
	defer conn.Close()
	l := &link{conn: conn, gone: make(chan struct{})}
	defer close(l.gone)
	if !s.links.add(l) {
		l.send(object{"type": "disconnect", "reason": "too_many_websockets"})
		return
	}
	defer s.links.remove(l)
	s.greet(l)
	s.links.running.Go(l.ping)
	s.listen(l)
}

// admit takes a ticket, which is good once.
func (ls *links) admit(ticket string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	expires, ok := ls.tickets[ticket]
	delete(ls.tickets, ticket)
	if !ok || ls.closed || time.Now().After(expires) {
		return false
	}
	ls.running.Add(1)
	return true
}

// add says whether there was room for one more.
func (ls *links) add(l *link) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(ls.open) >= maxLinks || ls.closed {
		return false
	}
	ls.made++
	l.number = ls.made
	ls.open = append(ls.open, l)
	close(ls.opened)
	ls.opened = make(chan struct{})
	return true
}

func (ls *links) remove(l *link) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.open = slices.DeleteFunc(ls.open, func(other *link) bool { return other == l })
}

// next is the socket whose turn it is; nil: there is none, and the channel is
// closed when there is.
func (ls *links) next() (*link, <-chan struct{}) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(ls.open) == 0 {
		return nil, ls.opened
	}
	ls.turn++
	return ls.open[ls.turn%len(ls.open)], nil
}

func (ls *links) all() []*link {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Clone(ls.open)
}

// close ends all sockets and waits until they are gone.
func (ls *links) close() {
	ls.mu.Lock()
	ls.closed = true
	ls.mu.Unlock()
	for _, l := range ls.all() {
		_ = l.conn.Close() // what is cut is cut
	}
	ls.running.Wait()
}

// greet says hello.
func (s *Server) greet(l *link) {
	l.send(object{
		"type": "hello", "num_connections": len(s.links.all()), "connection_info": object{"app_id": s.appID},
		"debug_info": object{"host": "applink-1", "build_number": 1, "approximate_connection_time": 3600},
	})
}

// send writes to the socket. If that fails the reader sees it.
func (l *link) send(o object) {
	l.write.Lock()
	defer l.write.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_ = l.conn.WriteMessage(websocket.TextMessage, mustJSON(o))
}

// ping shows the app that the socket is alive, which its client watches.
func (l *link) ping() {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		_ = l.conn.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(time.Second))
		select {
		case <-l.gone:
			return
		case <-ticker.C:
		}
	}
}

// listen hands on what the app acknowledges, until the socket ends.
func (s *Server) listen(l *link) {
	for {
		_, message, err := l.conn.ReadMessage()
		if err != nil {
			return
		}
		var a ack
		switch {
		case json.Unmarshal(message, &a) != nil || a.EnvelopeID == "":
			s.Note("socket: what is no acknowledgement was sent")
		case len(message) < maxAck:
			s.links.acknowledge(a)
		}
	}
}

// acknowledge hands an answer to who waits for it; too late is too late.
func (ls *links) acknowledge(a ack) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if waiting := ls.waiting[a.EnvelopeID]; waiting != nil {
		delete(ls.waiting, a.EnvelopeID)
		waiting <- a
	}
}

// Connections is how many sockets are open.
func (s *Server) Connections() int { return len(s.links.all()) }

// Send delivers over one of the open sockets, by turns, and waits until the
// app has acknowledged it; before that, until there is a socket. An event that
// is not acknowledged in time, or whose socket is cut, is sent again over the
// next one, at most three times. The body of the answer is the payload that
// came with it, and what that says is shown to people.
func (s *Server) Send(ctx context.Context, d Delivery) (Answer, error) {
	for attempt := 0; ; attempt++ {
		a, err := s.sendOnce(ctx, d)
		if err == nil {
			s.acknowledged(d, a)
			return Answer{Status: http.StatusOK, Body: a.Payload, Attempts: attempt + 1}, nil
		}
		lost := errors.Is(err, errUnanswered) || errors.Is(err, errCut)
		if !lost || d.Kind != Events || attempt == retries {
			return Answer{Attempts: attempt + 1}, fmt.Errorf("send: %w", err)
		}
		d = d.Retry(attempt+1, "timeout")
	}
}

func (s *Server) sendOnce(ctx context.Context, d Delivery) (ack, error) {
	l, err := s.link(ctx)
	if err != nil {
		return ack{}, err
	}
	id, waiting := uuid(), make(chan ack, 1)
	s.links.expect(id, waiting)
	defer s.links.expect(id, nil)
	l.send(envelope(id, d))
	timeout := time.NewTimer(s.opts.AckTimeout)
	defer timeout.Stop()
	select {
	case a := <-waiting:
		return a, nil
	case <-l.gone:
		return ack{}, errCut
	case <-timeout.C:
		return ack{}, errUnanswered
	case <-ctx.Done():
		return ack{}, context.Cause(ctx)
	}
}

// link waits for a socket.
func (s *Server) link(ctx context.Context) (*link, error) {
	for {
		l, opened := s.links.next()
		if l != nil {
			return l, nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, fmt.Errorf("there is no socket: %w", context.Cause(ctx))
		case <-s.closed:
			return nil, errors.New("the workspace is closed")
		}
	}
}

// expect says who waits for an envelope to be acknowledged; nil: nobody.
func (ls *links) expect(id string, waiting chan ack) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if waiting == nil {
		delete(ls.waiting, id)
		return
	}
	ls.waiting[id] = waiting
}

func envelope(id string, d Delivery) object {
	o := object{"envelope_id": id, "type": d.Kind, "payload": d.Payload, "accepts_response_payload": d.accepts()}
	if d.Kind == Events {
		o["retry_attempt"], o["retry_reason"] = d.attempt, d.reason
	}
	return o
}

// accepts says whether an answer may say something.
func (d Delivery) accepts() bool { return d.command != nil || d.view != nil }

func (s *Server) acknowledged(d Delivery, a ack) {
	if d.accepts() {
		s.answered(d, a.Payload)
	} else if len(a.Payload) > 0 && string(a.Payload) != "null" {
		s.Note("socket: a payload came with an acknowledgement that takes none")
	}
}

// Disconnect tells all open sockets that they will be closed, and closes them
// after the grace. Slack's reasons are "warning" (some ten seconds before),
// "refresh_requested" and "link_disabled". It returns when they are closed.
func (s *Server) Disconnect(reason string, grace time.Duration) {
	open := s.links.all()
	for _, l := range open {
		l.send(object{"type": "disconnect", "reason": reason, "debug_info": object{"host": "applink-1"}})
	}
	select {
	case <-time.After(grace):
	case <-s.closed:
	}
	for _, l := range open {
		_ = l.conn.Close() // what is cut is cut
		<-l.gone
	}
}

// Cut ends all open sockets without a word.
func (s *Server) Cut() {
	for _, l := range s.links.all() {
		_ = l.conn.Close() // what is cut is cut
		<-l.gone
	}
}
