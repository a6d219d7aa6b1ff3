package slacktest_test

import (
	"context"
	"errors"
	"io"
	"log"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack/socketmode"

	"ship/integrations/slack/slacktest"
)

// listener is an app on a socket, which does with each request as it is told.
type listener struct {
	got chan string
}

// listen runs slack-go's own client until the test ends.
func (c *client) listen(name string, on func(*socketmode.Client, *socketmode.Request)) *listener {
	c.t.Helper()
	l := &listener{got: make(chan string, 100)}
	before := c.Connections()
	api := socketmode.New(c.Client, socketmode.OptionLog(log.New(io.Discard, "", 0)))
	ctx, cancel := context.WithCancelCause(c.t.Context())
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		_ = api.RunContext(ctx) // ends with the test
	}()
	hello := make(chan struct{}, 100)
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-api.Events:
				if e.Type == socketmode.EventTypeHello {
					hello <- struct{}{}
				} else if e.Request != nil && e.Request.EnvelopeID != "" {
					l.got <- name
					on(api, e.Request)
				}
			}
		}
	}()
	c.t.Cleanup(func() {
		cancel(errors.New("the test is over"))
		<-done
		<-done
	})
	<-hello
	if c.Connections() != before+1 {
		c.t.Errorf("%d sockets are open", c.Connections())
	}
	return l
}

func acknowledge(api *socketmode.Client, r *socketmode.Request) { _ = api.Ack(*r) }

func TestSockets(t *testing.T) {
	t.Parallel()
	c := quick(t)
	one, two := c.listen("one", acknowledge), c.listen("two", acknowledge)
	for n := range 6 {
		_, ds := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
		if got, err := c.Send(t.Context(), ds[0]); err != nil || got.Attempts != 1 {
			t.Errorf("%d: %+v, %v", n, got, err)
		}
	}
	if len(one.got) != 3 || len(two.got) != 3 {
		t.Errorf("the load is %d and %d", len(one.got), len(two.got))
	}
	if _, err := c.Send(t.Context(), c.Slash(slacktest.Command{By: "ada", Text: "status"})); err != nil {
		t.Error(err)
	}
	c.Disconnect("refresh_requested", 0)
	_, ds := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	if _, err := c.Send(t.Context(), ds[0]); err != nil { // over a new socket
		t.Error(err)
	}
	if got := c.Violations(); len(got) != 0 {
		t.Errorf("violations %q", got)
	}
}

// TestRedelivery: what is not acknowledged comes again, if it is an event.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	c := newClient(t, slacktest.Options{Limits: slacktest.NoLimits(), AckTimeout: 300 * time.Millisecond})
	retried := make(chan socketmode.Request, 100)
	c.listen("slow", func(api *socketmode.Client, r *socketmode.Request) {
		retried <- *r
		if r.RetryAttempt >= 2 {
			acknowledge(api, r)
		}
	})
	_, ds := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	if got, err := c.Send(t.Context(), ds[0]); err != nil || got.Attempts < 3 {
		t.Errorf("%+v, %v", got, err)
	}
	first, second := <-retried, <-retried
	if first.EnvelopeID == second.EnvelopeID || string(first.Payload) != string(second.Payload) || second.RetryReason != "timeout" {
		t.Errorf("first %+v, then %+v", first, second)
	}
	if got, err := c.Send(t.Context(), c.Slash(slacktest.Command{By: "ada"})); err == nil || got.Attempts != 1 {
		t.Errorf("a command comes once: %+v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c.Cut()
	if _, err := c.Send(ctx, ds[0]); err == nil {
		t.Error("nobody is there")
	}
}

// TestAckPayloads: an acknowledgement may say something, if it is asked.
func TestAckPayloads(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.listen("talker", func(api *socketmode.Client, r *socketmode.Request) { _ = api.Ack(*r, map[string]any{"text": "On it"}) })
	if _, err := c.Send(t.Context(), c.Slash(slacktest.Command{Channel: "eng", By: "ada"})); err != nil {
		t.Fatal(err)
	}
	if got := c.Whispers("ada"); len(got) != 1 || got[0].Plain != "On it" {
		t.Errorf("whispers %+v", got)
	}
}

// TestTickets: an address is good for one socket, and ten may be open.
func TestTickets(t *testing.T) {
	t.Parallel()
	c := quick(t)
	dial := func() (address string, conn *websocket.Conn) {
		t.Helper()
		_, address, err := c.StartSocketModeContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), address, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		t.Cleanup(func() { _ = conn.Close() })
		return address, conn
	}
	var said struct{ Type, Reason string }
	for range 10 {
		address, conn := dial()
		if err := conn.ReadJSON(&said); err != nil || said.Type != "hello" {
			t.Fatalf("got %+v, %v", said, err)
		}
		if _, resp, err := websocket.DefaultDialer.DialContext(t.Context(), address, nil); err == nil {
			t.Error("the address was used")
		} else {
			_ = resp.Body.Close()
		}
	}
	_, conn := dial()
	if err := conn.ReadJSON(&said); err != nil || said.Type != "disconnect" || said.Reason != "too_many_websockets" {
		t.Errorf("got %+v, %v", said, err)
	}
	if c.Connections() != 10 {
		t.Errorf("%d are open", c.Connections())
	}
}
