package turn

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// shelf is a provider that only lists and destroys.
type shelf struct {
	sandbox.Provider
	boxes     []sandbox.Info
	destroyed []string
}

func (s *shelf) List(context.Context, map[string]string) ([]sandbox.Info, error) { return s.boxes, nil }

func (s *shelf) Destroy(_ context.Context, id string) error {
	s.destroyed = append(s.destroyed, id)
	return nil
}

var errUnread = errors.New("the store is away")

func TestReapTakesStraysOnly(t *testing.T) {
	t.Parallel()
	old := time.Now().Add(-time.Hour)
	boxes := &shelf{boxes: []sandbox.Info{
		{ID: "mine", Key: "s.1", Created: old}, {ID: "older", Key: "s.1", Created: old}, {ID: "nobody's", Key: "s.2", Created: old},
		{ID: "coming", Key: "s.3", Created: old}, {ID: "young", Key: "s.2", Created: time.Now()}, {ID: "unreadable", Key: "s.4", Created: old},
	}}
	states := map[session.ID]session.State{
		"s.1": {Box: "mine", Life: &lifecycle.Box{ID: "mine", State: lifecycle.Idle}},
		"s.3": {Turn: &session.Turn{Stage: session.Preparing, Deadline: time.Now().Add(time.Hour)}},
	}
	w := New(Config{Boxes: boxes, Log: slog.New(slog.DiscardHandler)})
	err := w.reapOnce(t.Context(), func(_ context.Context, id session.ID) (session.State, error) {
		if id == "s.4" {
			return session.State{}, errUnread
		}
		s, ok := states[id]
		if !ok {
			return session.State{}, session.ErrUnknown
		}
		return s, nil
	})
	if !errors.Is(err, errUnread) || !slices.Equal(boxes.destroyed, []string{"older", "nobody's"}) {
		t.Errorf("destroyed %v, %v", boxes.destroyed, err)
	}
}
