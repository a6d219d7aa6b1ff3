package slacktest_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/slack-go/slack/socketmode"

	"ship/integrations/slack/slacktest"
)

// TestManyAtOnce: what comes at the same time is all there in the end.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.listen("one", acknowledge)
	c.listen("two", acknowledge)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			root, ds := c.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: fmt.Sprint(n)})
			_, err := c.Send(t.Context(), ds[0])
			if _, _, failed := c.PostMessageContext(t.Context(), c.eng, text("On it")); errors.Join(err, failed) != nil {
				t.Error(err, failed)
			}
			_ = c.World()
			_ = c.Thread("eng", root)
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, m := range c.Messages("eng") {
		seen[m.TS] = true
	}
	if len(seen) != 40 {
		t.Errorf("%d messages with timestamps of their own", len(seen))
	}
}

// TestCloseLetsGo: who waits for an acknowledgement, or for a socket, is told.
func TestCloseLetsGo(t *testing.T) {
	t.Parallel()
	s, err := slacktest.New(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.CreateChannel(slacktest.Channel{Name: "eng"})
	_, ds := s.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	sent := make(chan error, 1)
	go func() {
		_, err := s.Send(t.Context(), ds[0])
		sent <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err == nil {
		t.Error("nobody acknowledged it")
	}
}

// TestCloseWithSockets: Close ends sockets that are open, and deliveries over them.
func TestCloseWithSockets(t *testing.T) {
	t.Parallel()
	s, err := slacktest.New(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.CreateChannel(slacktest.Channel{Name: "eng"})
	c := &client{Server: s, Client: connect(s), t: t}
	reached := make(chan struct{}, 10)
	c.listen("deaf", func(*socketmode.Client, *socketmode.Request) { reached <- struct{}{} })
	_, ds := s.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	sent := make(chan error, 1)
	go func() {
		_, err := s.Send(t.Context(), ds[0])
		sent <- err
	}()
	<-reached
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err == nil {
		t.Error("nobody acknowledged it")
	}
}
