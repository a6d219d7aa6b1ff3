package turn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ship/sandbox"
	"ship/sandbox/broker"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// cloud is a provider whose boxes expire, pause and forget, in virtual time.
type cloud struct {
	sandbox.Provider
	mu    sync.Mutex // the heartbeat is beside the test
	boxes map[string]*machine
	made  int
	// did is what it was asked to change.
	did []string
	// refuses is what Pause and Destroy answer.
	refuses error
	// hides: List leaves all out; unlisted is what it answers instead.
	hides    bool
	unlisted error
	// making is called while a box is made, with what its making hangs on.
	making func(context.Context) error
	// attaching is called before an attach.
	attaching func(context.Context) error
}

type machine struct {
	sandbox.Box
	info  sandbox.Info
	files map[string]string
}

func (m *machine) Write(_ context.Context, path string, data []byte, _ fs.FileMode) error {
	m.files[path] = string(data)
	return nil
}

func (m *machine) ReadFrom(_ context.Context, path string, _ int64) ([]byte, error) {
	text, ok := m.files[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (c *cloud) find(id string) (*machine, error) {
	m, ok := c.boxes[id]
	if !ok || m.info.State == sandbox.Running && time.Now().After(m.info.Expires) {
		return nil, fmt.Errorf("box %s: %w", id, sandbox.ErrGone)
	}
	return m, nil
}

func (c *cloud) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Info, error) {
	for id, m := range c.boxes {
		if _, err := c.find(id); err == nil && m.info.Key == spec.Key {
			return m.info, nil
		}
	}
	c.made++
	now := time.Now()
	info := sandbox.Info{
		ID: fmt.Sprintf("box%d", c.made), Key: spec.Key, Generation: spec.Generation,
		State: sandbox.Running, Created: now, Expires: now.Add(spec.TTL),
	}
	c.boxes[info.ID] = &machine{info: info, files: map[string]string{}}
	c.did = append(c.did, "made "+info.ID)
	if c.making != nil {
		return info, c.making(ctx)
	}
	return info, nil
}

func (c *cloud) Attach(ctx context.Context, id string, ttl time.Duration) (sandbox.Box, error) {
	if c.attaching != nil {
		if err := c.attaching(ctx); err != nil {
			return nil, err
		}
	}
	m, err := c.find(id)
	if err != nil {
		return nil, err
	}
	if m.info.State == sandbox.Paused {
		c.did = append(c.did, "woke "+id)
		m.info.State, m.info.Expires = sandbox.Running, time.Time{}
	}
	return m, c.Extend(context.Background(), id, time.Now().Add(ttl))
}

func (c *cloud) Info(_ context.Context, id string) (sandbox.Info, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.find(id)
	if err != nil {
		return sandbox.Info{}, err
	}
	return m.info, nil
}

func (c *cloud) Extend(_ context.Context, id string, until time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.boxes[id]
	if !ok {
		return sandbox.ErrGone
	}
	if until.After(m.info.Expires) {
		m.info.Expires = until
	}
	return nil
}

func (c *cloud) Pause(_ context.Context, id string) error {
	if c.refuses == nil {
		c.did = append(c.did, "paused "+id)
		c.boxes[id].info.State = sandbox.Paused
	}
	return c.refuses
}

func (c *cloud) Destroy(_ context.Context, id string) error {
	if c.refuses != nil {
		return c.refuses
	}
	if _, ok := c.boxes[id]; ok {
		c.did = append(c.did, "destroyed "+id)
	}
	delete(c.boxes, id)
	return nil
}

// host is a worker at a cloud, and a session whose box is there.
type host struct {
	*cloud
	*Worker
	t     *testing.T
	state session.State
	// ends are the ends of boxes that were told.
	ends chan time.Time
}

func newHost(t *testing.T) *host {
	t.Helper()
	signer, err := broker.NewSigner(make([]byte, broker.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{boxes: map[string]*machine{}}
	return &host{t: t, cloud: c, ends: make(chan time.Time, 99), Worker: New(Config{
		Boxes: c, Tokens: signer, Broker: newBooks(), Slots: 1, PerPerson: 1, Life: lifecycle.Default(), Log: slog.New(slog.DiscardHandler),
	}), state: session.State{
		ID: "gh.1.7", Repo: session.Repo{Name: "o/r"}, Branch: "ship/x", Base: "main",
		Turn: &session.Turn{N: 1, Stage: session.Preparing, Deadline: time.Now().Add(time.Hour)},
	}}
}

func (h *host) job(k session.EffectKind) session.Job {
	s := h.state
	return session.Job{
		State: s, Now: time.Now, Effect: session.Effect{Kind: k, Text: s.Box}, Lease: session.Lease{Epoch: 3},
		Latest: func() session.State { return s }, Progress: h.progress,
	}
}

func (h *host) progress(p session.Progress) {
	if !p.Ends.IsZero() {
		h.ends <- p.Ends
	}
}

// turn begins and ends one in the session's box.
func (h *host) turn(ends bool) {
	h.t.Helper()
	box, life, err := h.enter(h.t.Context(), h.job(session.Prepare))
	if err != nil {
		h.t.Fatal(err)
	}
	if life, err = life.Apply(lifecycle.TurnBegun, time.Now()); err != nil {
		h.t.Fatal(err)
	}
	h.state.Turn.Stage = session.Running
	if ends {
		h.mark(h.t.Context(), box, life)
		h.lay(h.t.Context(), h.job(session.Publish), life)
		if life, err = life.Apply(lifecycle.TurnEnded, time.Now()); err != nil {
			h.t.Fatal(err)
		}
		h.state.Turn.Stage = session.Ended
	}
	h.state.Box, h.state.Life = life.ID, &life
}

// rest lets the session's timer run for some time.
func (h *host) rest(d time.Duration) {
	h.t.Helper()
	until := time.Now().Add(d)
	for h.state.Box != "" {
		due := lifecycle.Due(*h.state.Life, h.state.BoxPolicy(h.Worker.Life))
		if due.IsZero() || due.After(until) {
			break
		}
		time.Sleep(time.Until(due))
		h.tended()
	}
	time.Sleep(time.Until(until))
}

func (h *host) tended() {
	h.t.Helper()
	out, err := h.Perform(h.t.Context(), h.job(session.Tend))
	if err != nil {
		h.t.Fatal(err)
	}
	life := out.Tended.Life
	h.state.Life, h.state.Unpausable = &life, h.state.Unpausable || out.Tended.Unpausable
	if life.State == lifecycle.Destroyed {
		h.state.Box, h.state.Life = "", nil
	}
}

func (h *host) wants(did ...string) {
	h.t.Helper()
	if !slices.Equal(h.did, did) {
		h.t.Errorf("the provider was asked for %q, want %q", h.did, did)
	}
}

func inTime(t *testing.T, story func(*testing.T, *host)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { story(t, newHost(t)) })
}

func TestABoxAtRestIsPausedAndThenDestroyed(t *testing.T) {
	inTime(t, func(_ *testing.T, h *host) {
		h.turn(true)
		h.rest(4 * time.Minute)
		h.wants("made box1")
		h.rest(2 * time.Minute)
		h.wants("made box1", "paused box1")
		h.rest(time.Hour)
		h.wants("made box1", "paused box1", "destroyed box1")
	})
}

func TestAPausedBoxWakesForATurn(t *testing.T) {
	inTime(t, func(_ *testing.T, h *host) {
		h.turn(true)
		h.rest(10 * time.Minute)
		h.turn(true)
		h.wants("made box1", "paused box1", "woke box1")
	})
}

func TestABoxThatWokeWithoutItsLastFilesIsReplaced(t *testing.T) {
	inTime(t, func(_ *testing.T, h *host) {
		h.turn(true)
		h.turn(true)
		h.rest(10 * time.Minute)
		h.boxes["box1"].files[markerPath] = "1\n"
		h.turn(true)
		h.wants("made box1", "paused box1", "woke box1", "destroyed box1", "made box2")
	})
}

func TestABoxThatIsGoneIsReplaced(t *testing.T) {
	inTime(t, func(_ *testing.T, h *host) {
		h.turn(true)
		delete(h.boxes, "box1")
		h.turn(true)
		h.wants("made box1", "made box2")
		delete(h.boxes, "box2")
		h.rest(10 * time.Minute)
		if h.state.Box != "" {
			t.Errorf("the box is %+v", h.state.Life)
		}
	})
}

func TestABoxNearItsEndIsReplacedBeforeATurn(t *testing.T) {
	inTime(t, func(t *testing.T, h *host) {
		h.Worker.Life.Cap = 2 * time.Hour
		h.Worker.Life.IdlePause = 0
		h.turn(true)
		h.rest(20 * time.Minute)
		h.turn(true)
		h.rest(20 * time.Minute)
		h.turn(true)
		h.wants("made box1", "destroyed box1", "made box2")
	})
}

func TestAProviderThatCannotPause(t *testing.T) {
	inTime(t, func(_ *testing.T, h *host) {
		h.refuses = sandbox.ErrUnsupported
		h.turn(true)
		h.rest(30 * time.Minute)
		h.refuses = nil
		h.turn(true) // the box was kept for it
		h.rest(2 * time.Hour)
		h.wants("made box1", "destroyed box1")
	})
}

func TestAPauseThatFailsIsTriedAgainAndThenAnEnd(t *testing.T) {
	inTime(t, func(t *testing.T, h *host) {
		h.turn(true)
		h.refuses = errors.New("not now")
		h.rest(6 * time.Minute)
		if h.state.Life.Tries == 0 {
			t.Errorf("no try is noted: %+v", h.state.Life)
		}
		h.refuses = nil
		h.rest(20 * time.Minute)
		if len(h.did) != 2 {
			t.Errorf("the provider was asked for %q", h.did)
		}
	})
}

// TestTendingAfterACrash: the provider did what it was asked, and whoever asked
// died before that was noted.
func TestTendingAfterACrash(t *testing.T) {
	inTime(t, func(t *testing.T, h *host) {
		h.turn(true)
		time.Sleep(6 * time.Minute)
		before := h.state.Life
		h.tended()
		h.state.Life = before
		h.tended()
		if h.wants("made box1", "paused box1"); h.state.Life.State != lifecycle.Paused {
			t.Errorf("the box is noted as %s", h.state.Life.State)
		}
		time.Sleep(time.Hour)
		before = h.state.Life
		h.tended()
		h.state.Box, h.state.Life = before.ID, before
		h.tended()
		if h.wants("made box1", "paused box1", "destroyed box1"); h.state.Box != "" {
			t.Errorf("the box is noted as %s", h.state.Life.State)
		}
	})
}

func TestATurnThatBeganMeanwhileHasTheBox(t *testing.T) {
	inTime(t, func(t *testing.T, h *host) {
		h.turn(true)
		time.Sleep(6 * time.Minute)
		job := h.job(session.Tend)
		now := h.state
		now.Turn = &session.Turn{N: 2, Stage: session.Preparing}
		job.Latest = func() session.State { return now }
		if _, err := h.Perform(t.Context(), job); err != nil {
			t.Error(err)
		}
		h.wants("made box1")
	})
}

// TestABoxIsKeptWhileATurnIsAtWork, and its end is told.
func TestABoxIsKeptWhileATurnIsAtWork(t *testing.T) {
	inTime(t, func(t *testing.T, h *host) {
		h.Worker.Life.Cap = 100 * time.Minute
		h.turn(false)
		stop := h.keepAlive(t.Context(), h.job(session.Run), *h.state.Life)
		time.Sleep(79 * time.Minute)
		if _, err := h.Info(t.Context(), "box1"); err != nil || len(h.ends) > 0 {
			t.Errorf("in the middle of a turn: %v, told %d times", err, len(h.ends))
		}
		time.Sleep(4 * time.Minute)
		stop()
		if len(h.ends) == 0 {
			t.Error("the end is not told")
		} else if end := <-h.ends; !end.Equal(h.state.Life.Born.Add(100 * time.Minute)) {
			t.Errorf("the end is told as %s", end)
		}
		left := time.Until(h.boxes["box1"].info.Expires)
		if left <= 0 || left > h.Worker.Life.TTL {
			t.Errorf("nobody looks after it, and it lives for another %s", left)
		}
	})
}
