package github

import (
	"net/http"
	"testing"
	"time"
)

// TestClock: an app's signatures go by GitHub's clock where this machine's is
// wrong, and what was refused for that is repeated.
func TestClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		c := &clock{}
		answer := &http.Response{Header: http.Header{"Date": {time.Now().Add(ahead).UTC().Format(http.TimeFormat)}}}
		if !c.heed(answer, time.Now()) || c.heed(answer, time.Now().Add(time.Second)) {
			t.Errorf("%s: it is news once", ahead)
		}
		if got := time.Duration(c.ahead.Load()); (got - ahead).Abs() > 2*time.Second {
			t.Errorf("learned %s, want %s", got, ahead)
		}
		right := &http.Response{Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}}
		if !c.heed(right, time.Now()) || c.ahead.Load() != 0 {
			t.Errorf("%s: a clock that was set right is not gone by", ahead)
		}
	}
	if c := (&clock{}); c.heed(&http.Response{Header: http.Header{"Date": {"yesterday"}}}, time.Now()) {
		t.Error("no time is news")
	}
}

// TestRefusedForTheTime: what is signed for another time is refused once. The
// next signature goes by the time that GitHub said.
func TestRefusedForTheTime(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{20 * time.Minute, -20 * time.Minute} {
		a := newWorld(t).Performer.app
		a.config.clock.ahead.Store(int64(off)) // as if this machine's clock had been so wrong until now
		_, _, err := a.self.Apps.Get(t.Context(), "")
		if err == nil || !classify(err, repo{}).Again {
			t.Errorf("%s: it is not to be repeated: %v", off, err)
		}
		if _, _, err := a.self.Apps.Get(t.Context(), ""); err != nil {
			t.Errorf("%s: by GitHub's time: %v", off, err)
		}
	}
}
