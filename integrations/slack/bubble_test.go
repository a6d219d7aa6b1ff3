package slack

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session/memory"
)

// wire carries requests out of a bubble of virtual time. The stand-in's clock
// follows the bubble's. A request that hangs does so on this side: what waits
// for a socket would hold the bubble's clock.
type wire struct {
	server *slacktest.Server
	begun  time.Time
	next   http.RoundTripper
	// hangs has whatever is asked for hang.
	hangs bool

	mu sync.Mutex
	// set is how far the stand-in's clock was turned; guarded by mu, as the rest.
	set time.Duration
	// done counts requests by their methods, and over those refused for the rate.
	done, over map[string]int
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.hangs {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	w.mu.Lock()
	if since := time.Since(w.begun); since > w.set {
		w.server.Advance(since - w.set)
		w.set = since
	}
	w.mu.Unlock()
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	method := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[method]++
	if resp.StatusCode == http.StatusTooManyRequests {
		w.over[method]++
	}
	return resp, nil
}

// total of all methods.
func total(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// inBubble puts a floor into virtual time, which goes on from when its thread
// began. The stand-in itself stays outside.
func (f *floor) inBubble(t *testing.T) *wire {
	w := &wire{
		server: f.Server, begun: time.Now(), next: &http.Transport{DisableKeepAlives: true},
		done: map[string]int{}, over: map[string]int{},
	}
	f.t, f.quota, f.clock = t, &memory.Quota{}, time.Until(moment(f.thread.root))
	f.performer = f.gateway(w)
	return w
}
