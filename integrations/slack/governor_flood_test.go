package slack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
	memstore "ship/session/memory"
)

// clockwork is the way to a stand-in from inside a bubble: it takes a moment,
// not always the same, and turns the stand-in's clock along with the bubble's.
// (The stand-in also sees the time that really passes, some tenths of a second
// in all.) Connections are not kept, for a bubble's time stands still while one
// is open.
type clockwork struct {
	server *slacktest.Server
	next   http.RoundTripper

	mu sync.Mutex
	at time.Time // guarded by mu
}

func newClockwork(s *slacktest.Server) *clockwork {
	return &clockwork{server: s, next: &http.Transport{DisableKeepAlives: true}, at: time.Now()}
}

func (c *clockwork) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(rand.N(100 * time.Millisecond))
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.server.Advance(now.Sub(c.at))
	c.at = now
	return c.next.RoundTrip(r)
}

// flood is many sessions in one channel of a workspace, with one gateway.
type flood struct {
	*testing.T
	governor *governor
	client   *api.Client
	channel  string

	mu      sync.Mutex
	refused int        // guarded by mu
	posted  []Priority // guarded by mu
}

// insist makes a call until Slack takes it, as sessions do.
func (f *flood) insist(p Priority, method string, request func(context.Context) error) {
	c := call{team: team, method: method, channel: f.channel}
	for {
		if err := f.governor.acquire(f.Context(), p, c); err != nil {
			f.Error(err)
			return
		}
		err := request(f.Context())
		var limited *api.RateLimitedError
		if !errors.As(err, &limited) {
			if err != nil {
				f.Error(err)
			}
			return
		}
		f.mu.Lock()
		f.refused++
		f.mu.Unlock()
		if err := f.governor.refused(f.Context(), c, limited.RetryAfter); err != nil {
			f.Error(err)
			return
		}
	}
}

func (f *flood) post(p Priority) (ts string) {
	f.insist(p, "chat.postMessage", func(ctx context.Context) (err error) {
		_, ts, err = f.client.PostMessageContext(ctx, f.channel, api.MsgOptionText(fmt.Sprint(int(p)), false))
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.posted = append(f.posted, p)
	return ts
}

// move changes a message again and again, as progress does.
func (f *flood) move(ts string, times int) {
	for i := range times {
		f.insist(Moving, "chat.update", func(ctx context.Context) error {
			_, _, _, err := f.client.UpdateMessageContext(ctx, f.channel, ts, api.MsgOptionText(fmt.Sprint(i), false))
			return err
		})
		time.Sleep(5 * time.Second)
	}
}

// TestFlood: forty messages at once for one channel, and two hundred changes of
// them, go by Slack's limits, the most urgent first. Where Slack takes bursts as
// it says, it refuses nothing; where it took none, it refuses what came with
// the first.
func TestFlood(t *testing.T) {
	for name, tt := range map[string]struct{ burst, refused int }{
		"bursts pass":      {channelBurst, 0},
		"no bursts at all": {1, 2 * (channelBurst - 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := slacktest.New(slacktest.Options{Limits: slacktest.Limits{ChannelBurst: tt.burst}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			channel := s.CreateChannel(slacktest.Channel{Name: "eng"})
			synctest.Test(t, func(t *testing.T) {
				f := &flood{T: t, governor: newGovernor(&memstore.Quota{}), channel: channel}
				f.client = api.New(s.BotToken(), api.OptionAPIURL(s.APIURL()), api.OptionHTTPClient(&http.Client{Transport: newClockwork(s)}))
				f.run()
				f.inOrder()
				t.Logf("%d refused, after %d messages and %d changes", f.refused, s.Calls("chat.postMessage"), s.Calls("chat.update"))
				if f.refused > tt.refused {
					t.Errorf("slack refused %d, want %d at most", f.refused, tt.refused)
				}
			})
		})
	}
}

func (f *flood) run() {
	var all sync.WaitGroup
	begun := time.Now()
	for p := range priorities {
		for range 10 {
			all.Go(func() {
				ts := f.post(p)
				all.Go(func() { f.move(ts, 5) })
			})
		}
	}
	all.Wait()
	f.Logf("took %s", time.Since(begun))
	// Forty messages a second apart would take less than a minute, and two
	// hundred changes at fifty in a minute four of them.
	if took := time.Since(begun); took > 6*time.Minute {
		f.Errorf("took %s", took)
	}
}

// inOrder: but for those that could be posted at once, the most urgent first.
func (f *flood) inOrder() {
	if len(f.posted) != int(priorities)*10 {
		f.Fatalf("%d messages", len(f.posted))
	}
	rest := f.posted[channelBurst:]
	if !slices.IsSortedFunc(rest, func(a, b Priority) int { return int(b - a) }) {
		f.Errorf("posted in the order %v", f.posted)
	}
}
