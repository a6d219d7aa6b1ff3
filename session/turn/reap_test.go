package turn

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"ship/sandbox"
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

func TestReapTakesStraysOnly(t *testing.T) {
	t.Parallel()
	boxes := &shelf{boxes: []sandbox.Info{
		{ID: "mine", Key: "s.1"}, {ID: "older", Key: "s.1"}, {ID: "nobody's", Key: "s.2"}, {ID: "coming", Key: "s.3"},
	}}
	states := map[session.ID]session.State{
		"s.1": {Box: "mine"},
		"s.3": {Turn: &session.Turn{Stage: session.Preparing, Deadline: time.Now().Add(time.Hour)}},
	}
	w := New(Config{Boxes: boxes, Log: slog.New(slog.DiscardHandler)})
	err := w.reapOnce(t.Context(), func(_ context.Context, id session.ID) (session.State, error) {
		s, ok := states[id]
		if !ok {
			return session.State{}, session.ErrUnknown
		}
		return s, nil
	})
	if err != nil || !slices.Equal(boxes.destroyed, []string{"older", "nobody's"}) {
		t.Errorf("destroyed %v, %v", boxes.destroyed, err)
	}
}
