package turn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/lifecycle"
	"ship/session"
)

var errUnread = errors.New("the store is away")

// book is what sessions have on record, and what they were told.
type book struct {
	states map[session.ID]session.State
	// unread are the sessions that cannot be read.
	unread map[session.ID]bool
	// broken: nobody can say which sessions have a box.
	broken bool
	told   []session.Delivery
	// seen are the keys that are remembered, and until when.
	seen map[string]time.Time
}

func newBook() *book {
	return &book{states: map[session.ID]session.State{}, unread: map[session.ID]bool{}, seen: map[string]time.Time{}}
}

func (b *book) State(_ context.Context, id session.ID) (session.State, error) {
	if b.unread[id] {
		return session.State{}, errUnread
	}
	s, ok := b.states[id]
	if !ok {
		return s, session.ErrUnknown
	}
	return s, nil
}

func (b *book) Scheduled(context.Context) ([]session.ID, error) {
	if b.broken {
		return nil, errUnread
	}
	return slices.Collect(maps.Keys(b.states)), nil
}

func (b *book) Append(_ context.Context, d session.Delivery) (session.Receipt, error) {
	if until, ok := b.seen[d.Keys[0]]; ok && time.Now().Before(until) {
		return session.Receipt{Duplicate: true}, nil
	}
	b.seen[d.Keys[0]] = time.Now().Add(d.Keep)
	b.told = append(b.told, d)
	return session.Receipt{}, nil
}

// has puts a box on record that came into its state an hour ago.
func (b *book) has(id session.ID, box string, state lifecycle.State) session.State {
	s := session.State{ID: id, Box: box, Site: "here", Life: &lifecycle.Box{ID: box, State: state, Since: time.Now().Add(-time.Hour)}}
	b.states[id] = s
	return s
}

// reaping is a host whose boxes are held against a book.
type reaping struct {
	*host
	*reaper
	*book
}

func reapInTime(t *testing.T, story func(*testing.T, reaping)) {
	inTime(t, func(t *testing.T, h *host) {
		h.Worker.Site = "here"
		b := newBook()
		story(t, reaping{host: h, reaper: &reaper{Worker: h.Worker, sessions: b}, book: b})
	})
}

// lists puts a box at the provider.
func (r reaping) lists(id string, key session.ID, age time.Duration) {
	r.boxes[id] = &machine{info: sandbox.Info{
		ID: id, Key: string(key), State: sandbox.Running, Created: time.Now().Add(-age), Expires: time.Now().Add(24 * time.Hour),
	}}
}

// after lets time pass, and then goes round.
func (r reaping) after(d time.Duration) error {
	time.Sleep(d)
	return r.round(r.t.Context())
}

func (r reaping) mustGo(d time.Duration) {
	r.t.Helper()
	if err := r.after(d); err != nil {
		r.t.Fatal(err)
	}
}

// heard names the sessions that were told, and of which boxes.
func (r reaping) heard(want ...string) {
	r.t.Helper()
	var got []string
	for _, d := range r.told {
		if d.Event.Kind != session.Vanished || !d.Known {
			r.t.Errorf("delivered: %+v", d)
		}
		got = append(got, fmt.Sprint(d.Session, " ", d.Event.Lost.Box))
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		r.t.Errorf("told were %q, want %q", got, want)
	}
}

func TestReapTakesStraysOnly(t *testing.T) {
	reapInTime(t, func(t *testing.T, r reaping) {
		for id, key := range map[string]session.ID{"mine": "s.1", "older": "s.1", "nobody's": "s.2", "coming": "s.3", "unreadable": "s.4"} {
			r.lists(id, key, time.Hour)
		}
		r.lists("young", "s.2", time.Second)
		r.has("s.1", "mine", lifecycle.Idle)
		r.states["s.3"] = session.State{Turn: &session.Turn{Stage: session.Preparing}}
		r.unread["s.4"] = true
		if err := r.after(0); !errors.Is(err, errUnread) {
			t.Errorf("a session that cannot be read: %v", err)
		}
		if slices.Sort(r.did); !slices.Equal(r.did, []string{"destroyed nobody's", "destroyed older"}) {
			t.Errorf("did %v", r.did)
		}
		r.broken = true
		if err := r.after(time.Hour); !errors.Is(err, errUnread) || !slices.Contains(r.did, "destroyed young") {
			t.Errorf("nobody can say who has a box: %v, and %v was done", err, r.did)
		}
		r.heard()
	})
}

// TestALostBoxIsTold after a grace time, and again while nobody heeds it, but not
// at every look; whatever state it was in.
func TestALostBoxIsTold(t *testing.T) {
	reapInTime(t, func(t *testing.T, r reaping) {
		r.has("s.1", "a", lifecycle.Idle)
		r.has("s.2", "b", lifecycle.Paused)
		s := r.has("s.3", "c", lifecycle.Busy)
		s.Turn = &session.Turn{Stage: session.Running}
		r.states["s.3"] = s
		r.has("s.4", "d", lifecycle.Idle)
		r.lists("d", "s.4", time.Hour)
		r.mustGo(0)
		r.mustGo(time.Minute)
		r.heard()
		r.mustGo(time.Minute)
		r.mustGo(time.Second)
		r.heard("s.1 a", "s.2 b", "s.3 c")
		for _, id := range []session.ID{"s.1", "s.2"} {
			delete(r.states, id)
		}
		r.mustGo(5 * time.Minute)
		r.heard("s.1 a", "s.2 b", "s.3 c", "s.3 c")
		r.wants()
	})
}

// TestTwoWhoReap tell once.
func TestTwoWhoReap(t *testing.T) {
	reapInTime(t, func(_ *testing.T, r reaping) {
		r.has("s.1", "a", lifecycle.Idle)
		other := r
		other.reaper = &reaper{Worker: r.host.Worker, sessions: r.book}
		for range 4 {
			r.mustGo(time.Minute)
			other.mustGo(time.Second)
		}
		r.heard("s.1 a")
	})
}

// TestWhatIsNotLost: a record that is new, that changed between the looks, that
// is being made or left, whose list is another's, or whose box the provider has
// after all.
func TestWhatIsNotLost(t *testing.T) {
	for name, change := range map[string]func(reaping, session.State){
		"young": func(r reaping, s session.State) { s.Life.Since = time.Now().Add(time.Hour); r.states["s.1"] = s },
		"of another machine": func(r reaping, s session.State) {
			s.Site = "there"
			r.states["s.1"] = s
		},
		"of an earlier release": func(r reaping, s session.State) { s.Site = ""; r.states["s.1"] = s },
		"of nobody's list":      func(r reaping, s session.State) { r.host.Worker.Site, s.Site = "", ""; r.states["s.1"] = s },
		"being prepared": func(r reaping, s session.State) {
			s.Turn = &session.Turn{Stage: session.Preparing}
			r.states["s.1"] = s
		},
		"lost already":   func(r reaping, s session.State) { s.Life.State = lifecycle.Lost; r.states["s.1"] = s },
		"being ended":    func(r reaping, s session.State) { s.Life.State = lifecycle.Destroying; r.states["s.1"] = s },
		"unreadable":     func(r reaping, _ session.State) { r.unread["s.1"] = true },
		"forgotten":      func(r reaping, _ session.State) { delete(r.states, "s.1") },
		"of no register": func(r reaping, _ session.State) { r.broken = true },
	} {
		t.Run(name, func(t *testing.T) {
			reapInTime(t, func(_ *testing.T, r reaping) {
				change(r, r.has("s.1", "a", lifecycle.Idle))
				for range 3 {
					_ = r.after(10 * time.Minute)
				}
				r.heard()
			})
		})
	}
	t.Run("used in between", func(t *testing.T) {
		reapInTime(t, func(_ *testing.T, r reaping) {
			for range 4 {
				s := r.has("s.1", "a", lifecycle.Idle)
				s.Life.Since = time.Now().Add(-5 * time.Minute)
				r.states["s.1"] = s
				r.mustGo(10 * time.Minute)
			}
			r.heard()
		})
	})
	t.Run("in another box since", func(t *testing.T) {
		reapInTime(t, func(_ *testing.T, r reaping) {
			r.has("s.1", "a", lifecycle.Idle)
			r.mustGo(0)
			r.has("s.1", "b", lifecycle.Idle)
			r.mustGo(10 * time.Minute)
			r.heard()
		})
	})
	t.Run("listed again", func(t *testing.T) {
		reapInTime(t, func(_ *testing.T, r reaping) {
			r.has("s.1", "a", lifecycle.Idle)
			r.mustGo(0)
			r.lists("a", "s.1", time.Hour)
			r.mustGo(2 * time.Minute)
			delete(r.boxes, "a")
			r.mustGo(time.Minute)
			r.heard()
		})
	})
}

// TestAListThatLeavesSomethingOut, or that fails, says nothing.
func TestAListThatLeavesSomethingOut(t *testing.T) {
	reapInTime(t, func(t *testing.T, r reaping) {
		r.has("s.1", "a", lifecycle.Idle)
		r.lists("a", "s.1", time.Hour)
		r.hides = true
		r.mustGo(0)
		for range 3 {
			if err := r.after(5 * time.Minute); err == nil {
				t.Error("nobody hears that the list is not whole")
			}
		}
		r.heard()
		delete(r.boxes, "a")
		r.unlisted = errUnread
		for range 3 {
			if err := r.after(5 * time.Minute); !errors.Is(err, errUnread) {
				t.Errorf("the list failed: %v", err)
			}
		}
		r.heard()
	})
}

// TestReapLooksAgainSoon where it missed a box, and ends with its context.
func TestReapLooksAgainSoon(t *testing.T) {
	reapInTime(t, func(t *testing.T, r reaping) {
		r.has("s.1", "a", lifecycle.Idle)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Second)
		defer cancel()
		if err := r.host.Reap(ctx, r.book); err != nil {
			t.Error(err)
		}
		r.heard("s.1 a")
	})
}
