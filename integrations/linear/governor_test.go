package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
	"ship/session/memory"
)

// meter is Linear's own accounting of one credential: exact, and unforgiving.
type meter struct {
	t  *testing.T
	mu sync.Mutex
	// limit per hour and what is left, of requests and points.
	limit [2]float64
	left  [2]float64
	at    time.Time
	done  [priorities]int
	over  int
}

func newMeter(t *testing.T, requests, points float64) *meter {
	return &meter{t: t, limit: [2]float64{requests, points}, left: [2]float64{requests, points}, at: time.Now()}
}

// request arrives at Linear, and returns the answer's header and status.
func (m *meter) request(p Priority, cost int) (http.Header, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	hours := time.Since(m.at).Hours()
	m.at = time.Now()
	h, status := http.Header{}, http.StatusOK
	need := [2]float64{1, float64(cost)}
	for i := range m.left {
		m.left[i] = min(m.limit[i], m.left[i]+hours*m.limit[i])
		if m.left[i] < need[i] {
			status = http.StatusTooManyRequests
		}
	}
	for i, kind := range []string{"Requests", "Complexity"} {
		if status == http.StatusOK {
			m.left[i] -= need[i]
		}
		full := m.at.Add(time.Duration((m.limit[i] - m.left[i]) / m.limit[i] * float64(time.Hour)))
		h.Set("X-RateLimit-"+kind+"-Limit", fmt.Sprintf("%.0f", m.limit[i]))
		h.Set("X-RateLimit-"+kind+"-Remaining", strconv.Itoa(int(m.left[i])))
		h.Set("X-RateLimit-"+kind+"-Reset", strconv.FormatInt(full.UnixMilli(), 10))
	}
	if status == http.StatusOK {
		m.done[p]++
	} else {
		m.over++
	}
	return h, status
}

// flood is many sessions that speak with one workspace.
type flood struct {
	*testing.T
	meter    *meter
	governor *Governor

	mu       sync.Mutex
	slowest  [priorities]time.Duration
	progress []int // of each session
}

// say does one request, as a session would.
func (f *flood) say(p Priority, cost int, acquire func() error) bool {
	begun := time.Now()
	if err := acquire(); err != nil {
		if !errors.Is(err, errNoRoom) {
			f.Error(err)
		}
		return false
	}
	took := time.Since(begun)
	f.mu.Lock()
	f.slowest[p] = max(f.slowest[p], took)
	f.mu.Unlock()
	time.Sleep(rand.N(300 * time.Millisecond)) // on its way
	h, status := f.meter.request(p, cost)
	time.Sleep(rand.N(300 * time.Millisecond)) // and back
	if err := f.governor.Observe(f.Context(), "acme", h, status); err != nil {
		f.Error(err)
	}
	return status == http.StatusOK
}

func (f *flood) must(p Priority, cost int) {
	if !f.say(p, cost, func() error { return f.governor.Acquire(f.Context(), "acme", p, cost) }) {
		f.Errorf("a request of priority %d was refused", p)
	}
}

var errNoRoom = errors.New("there is no room")

// try asks for one request of progress.
func (f *flood) try() error {
	wait, err := f.governor.Try(f.Context(), "acme", Moving, 20)
	if err == nil && wait > 0 {
		err = errNoRoom
	}
	return err
}

// session lives for a while: a first thought, news every ten seconds or so, a
// question every ten minutes, an answer.
func (f *flood) session(i int, life time.Duration) {
	time.Sleep(rand.N(10 * time.Second))
	f.must(Thinking, 50)
	var news sync.WaitGroup
	for n := range life / (10 * time.Second) {
		time.Sleep(rand.N(20 * time.Second))
		news.Go(func() {
			if f.say(Moving, 20, f.try) {
				f.mu.Lock()
				f.progress[i]++
				f.mu.Unlock()
			}
		})
		if n%60 == 59 {
			f.must(Asking, 100)
		}
	}
	f.must(Settling, 200)
	news.Wait()
}

// TestFlood: two hundred sessions want thirty times what Linear allows. Its
// limits are never exceeded, nothing that matters waits, and progress comes
// seldom, but to everybody.
func TestFlood(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string][2]float64{
		"requests are scarce": {5_000, 2_000_000},
		"points are scarce":   {50_000, 200_000},
		"known too late":      {2_000, 2_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const sessions, life = 200, 2 * time.Hour
				f := &flood{
					T: t, meter: newMeter(t, limit[0], limit[1]),
					governor: NewGovernor(&memory.Quota{}), progress: make([]int, sessions),
				}
				var all sync.WaitGroup
				for i := range sessions {
					all.Go(func() { f.session(i, life) })
				}
				all.Wait()
				f.check(sessions, life, limit)
			})
		})
	}
}

func (f *flood) check(sessions int, life time.Duration, limit [2]float64) {
	f.Helper()
	f.Logf("done %v, slowest %v, progress per session %d to %d", f.meter.done, f.slowest, slices.Min(f.progress), slices.Max(f.progress))
	if f.meter.over > 0 {
		f.Errorf("%d requests were more than Linear allows", f.meter.over)
	}
	for p, want := range map[Priority]int{Thinking: sessions, Asking: sessions * 12, Settling: sessions} {
		if got := f.meter.done[p]; got != want {
			f.Errorf("priority %d: %d requests, want %d", p, got, want)
		}
		if f.slowest[p] > 2*time.Second {
			f.Errorf("priority %d waited %s", p, f.slowest[p])
		}
	}
	least, most := slices.Min(f.progress), slices.Max(f.progress)
	if mean := f.meter.done[Moving] / sessions; least == 0 || least < mean/4 || most > 2*mean+4 { // who comes when there is room is chance
		f.Errorf("progress of sessions came %d to %d times", least, most)
	}
	if wanted := int(life / (10 * time.Second)); most > wanted/2 {
		f.Errorf("progress came %d times of %d: it was no flood", most, wanted)
	}
	// What progress may use is its share of a full bucket and what comes in,
	// less what the others took. It is to use most of that.
	others := [2]float64{float64(sessions * 14), float64(sessions * (50 + 12*100 + 200))}
	could := min((0.6+life.Hours())*limit[0]-others[0], ((0.6+life.Hours())*limit[1]-others[1])/20)
	if got := float64(f.meter.done[Moving]); got < 0.8*could {
		f.Errorf("progress came %.0f times, %.0f were possible", got, could)
	}
}

// TestUrgentFirst: of those that wait for the same drained bucket.
func TestUrgentFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(&memory.Quota{})
		if err := g.quota.Tell(t.Context(), "acme", session.Rate{Limit: [2]int64{100, 0}, Left: [2]int64{0, 0}, Window: window}); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []Priority
		var all sync.WaitGroup
		for p := range priorities {
			for range 4 {
				all.Go(func() {
					if err := g.Acquire(t.Context(), "acme", p, 10); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					order = append(order, p)
				})
			}
		}
		begun := time.Now()
		all.Wait()
		if !slices.IsSortedFunc(order, func(a, b Priority) int { return int(b - a) }) {
			t.Errorf("order %v", order)
		}
		// 16 requests at 100 an hour, the last of which leave 40 of them.
		if took, want := time.Since(begun), 56*36*time.Second; took < want-time.Second || took > want+time.Minute {
			t.Errorf("took %s, want %s", took, want)
		}
	})
}

// TestRateLimited: after a refusal nobody asks, and then all go on.
func TestRateLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			kind, left string
			reset      time.Duration // from now
			want       time.Duration
		}{
			"it tells nothing":    {want: maxBlock},
			"all is there soon":   {"Requests", "0", 7 * time.Second, 7 * time.Second},
			"all is there late":   {"Complexity", "0", time.Hour, maxBlock},
			"it is another limit": {"Requests", "9", time.Second, maxBlock},
			"one endpoint":        {"Endpoint-Requests", "0", 9 * time.Second, 9 * time.Second},
			"its clock is behind": {"Requests", "0", -time.Minute, time.Second},
			"nonsense":            {"Requests", "none", time.Second, maxBlock},
		} {
			g := NewGovernor(&memory.Quota{})
			h := http.Header{}
			h.Set("X-RateLimit-"+tt.kind+"-Remaining", tt.left)
			h.Set("X-RateLimit-"+tt.kind+"-Reset", strconv.FormatInt(time.Now().Add(tt.reset).UnixMilli(), 10))
			begun := time.Now()
			if err := g.Observe(t.Context(), "acme", h, http.StatusTooManyRequests); err != nil {
				t.Fatal(err)
			}
			if err := g.Acquire(t.Context(), "other", Moving, 1); err != nil || time.Since(begun) != 0 {
				t.Errorf("%s: another credential waited %s, %v", name, time.Since(begun), err)
			}
			if err := g.Acquire(t.Context(), "acme", Settling, 1); err != nil || time.Since(begun) != tt.want {
				t.Errorf("%s: waited %s, want %s, %v", name, time.Since(begun), tt.want, err)
			}
		}
	})
}

// TestTry never waits, and takes nothing when there is too little.
func TestTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(&memory.Quota{})
		if err := g.quota.Tell(t.Context(), "acme", session.Rate{Limit: [2]int64{3600, 0}, Left: [2]int64{1441, 0}, Window: window}); err != nil {
			t.Fatal(err)
		}
		try := func(credential string, p Priority, want time.Duration) {
			t.Helper()
			begun := time.Now()
			wait, err := g.Try(t.Context(), credential, p, 1)
			if err != nil || wait.Round(time.Second) != want || time.Since(begun) != 0 {
				t.Errorf("priority %d: told to wait %s, want %s; %v", p, wait, want, err)
			}
		}
		try("acme", Moving, 0)
		try("acme", Moving, time.Second)
		try("acme", Moving, time.Second)
		try("acme", Thinking, 0)
		try("acme", Moving, 2*time.Second)
		try("other", Moving, 0)
		time.Sleep(2 * time.Second)
		try("acme", Moving, 0)
	})
}

func TestAcquireEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(&memory.Quota{})
		if err := g.quota.Tell(t.Context(), "acme", session.Rate{Limit: [2]int64{1, 0}, Left: [2]int64{0, 0}, Window: window}); err != nil {
			t.Fatal(err)
		}
		left := errors.New("left")
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		for range 3 { // one at the head of the line, two behind it
			all.Go(func() {
				if err := g.Acquire(ctx, "acme", Settling, 1); !errors.Is(err, left) {
					t.Errorf("got %v", err)
				}
			})
		}
		time.Sleep(time.Minute)
		cancel(left)
		all.Wait()
	})
}

func TestAcquireRefusesNonsense(t *testing.T) {
	t.Parallel()
	g := NewGovernor(&memory.Quota{})
	for _, tt := range []struct {
		p    Priority
		cost int
	}{{-1, 0}, {priorities, 0}, {Moving, -1}, {Moving, maxCost + 1}} {
		if err := g.Acquire(t.Context(), "acme", tt.p, tt.cost); err == nil {
			t.Errorf("%+v was accepted", tt)
		}
		if _, err := g.Try(t.Context(), "acme", tt.p, tt.cost); err == nil {
			t.Errorf("%+v was accepted", tt)
		}
	}
}

// listener is a quota that remembers what it was told.
type listener struct {
	memory.Quota
	rates []session.Rate
}

func (q *listener) Tell(ctx context.Context, account string, r session.Rate) error {
	q.rates = append(q.rates, r)
	return q.Quota.Tell(ctx, account, r)
}

// TestObserveIgnoresNonsense: a header that cannot be read says nothing.
func TestObserveIgnoresNonsense(t *testing.T) {
	t.Parallel()
	var q listener
	g := NewGovernor(&q)
	for _, pair := range [][2]string{{"", ""}, {"5000", ""}, {"", "3"}, {"x", "3"}, {"-1", "3"}, {"0", "0"}, {"5000", "-3"}, {"1e99", "3"}} {
		h := http.Header{}
		h.Set("X-RateLimit-Requests-Limit", pair[0])
		h.Set("X-RateLimit-Requests-Remaining", pair[1])
		if err := g.Observe(t.Context(), "acme", h, http.StatusOK); err != nil {
			t.Error(err)
		}
	}
	if len(q.rates) != 0 {
		t.Errorf("learned %+v", q.rates)
	}
}

// TestGatewaysShare: three gateways on one Redis take no more than there is.
func TestGatewaysShare(t *testing.T) {
	t.Parallel()
	q := onRedis(t).Quota()
	if err := q.Tell(t.Context(), "acme", session.Rate{Limit: [2]int64{30, 0}, Left: [2]int64{30, 0}, Window: window}); err != nil { // another in two minutes
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	granted := make(chan struct{}, 90)
	var all sync.WaitGroup
	for range 3 {
		g := NewGovernor(q)
		for range 30 {
			all.Go(func() {
				if err := g.Acquire(ctx, "acme", Settling, 10); err == nil {
					granted <- struct{}{}
				}
			})
		}
	}
	for range 30 {
		<-granted
	}
	if wait, err := q.Take(t.Context(), "acme", allowance(Settling, 0)); err != nil || wait == 0 {
		t.Errorf("after all was taken: %s, %v", wait, err)
	}
	cancel(errors.New("enough"))
	all.Wait()
	if n := len(granted); n > 0 {
		t.Errorf("%d more than there were", n)
	}
}

func TestStatusOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		want   int
	}{
		{400, `{"errors":[{"message":"x","extensions":{"type":"ratelimited","code":"RATELIMITED"}}]}`, 429},
		{200, `{"data":null,"errors":[{"extensions":{"code":"RATELIMITED"}}]}`, 429},
		{400, `{"errors":[{"extensions":{"code":"INPUT_ERROR"}},{"extensions":{"code":"RATELIMITED"}}]}`, 429},
		{400, `{"errors":[{"extensions":{"code":"AUTHENTICATION_ERROR"}}]}`, 401},
		{200, `{"errors":[{"extensions":{"code":"X","statusCode":401}}]}`, 401},
		{400, `{"errors":[{"extensions":{"code":"INPUT_ERROR","userError":true}}]}`, 400},
		{400, `{"errors":[{"extensions":null}]}`, 400},
		{400, `{"errors":{"code":"RATELIMITED"}}`, 400},
		{400, `{"errors":[{"extensions":{"code":7,"statusCode":401}}]}`, 401},
		{400, `RATELIMITED`, 400},
		{200, `{"data":{}}`, 200},
		{429, ``, 429},
		{502, `{"errors":[{"extensions":{"code":"RATELIMITED"}}]}`, 502},
	} {
		if got := StatusOf(tt.status, []byte(tt.body)); got != tt.want {
			t.Errorf("%d %s: got %d, want %d", tt.status, tt.body, got, tt.want)
		}
	}
}
