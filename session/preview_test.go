package session

import "testing"

// TestAPreviewLivesWithItsBox: it outlasts the turn that told of it, and not
// the box.
func TestAPreviewLivesWithItsBox(t *testing.T) {
	t.Parallel()
	shown := &Preview{Port: 3000, URL: "https://preview.example.net/preview/a.b/"}
	n := &step{State: State{ID: "s", Box: "b", Turn: &Turn{N: 1, Stage: Running}}}
	n.moved(Progress{Preview: shown})
	n.moved(Progress{Doing: "bash: make"}) // knows nothing of it
	if v := ViewOf(n.State); v.Preview == nil || *v.Preview != *shown || n.Turn.Progress.Preview != nil {
		t.Errorf("told: %+v, kept in the turn: %+v", v.Preview, n.Turn.Progress.Preview)
	}
	n.Turn.Stage = Ended
	if ViewOf(n.State).Preview == nil {
		t.Error("the turn's end ended it")
	}
	n.moved(Progress{Preview: &Preview{}})
	if n.Preview == nil {
		t.Error("it was heard although the turn is over")
	}
	n.giveUpBox()
	if n.Preview != nil {
		t.Error("it is there without its box")
	}
	n.exhibit(shown)
	n.exhibit(&Preview{})
	if n.Preview != nil {
		t.Error("it was not taken back")
	}
}
