package session

import (
	"slices"

	"ship/sandbox/lifecycle"
)

// OnRecord returns the box that the session counts on and nobody is about to
// look at, as it is told if the provider does not have it; nil: there is none.
// Whoever prepares a turn finds out by itself, and what was lost or is being
// destroyed is not counted on.
func (s State) OnRecord() *LostBox {
	if s.Life == nil || s.Box == "" || s.Busy() && s.Turn.Stage == Preparing || pendingKind(s.Pending, Discard) {
		return nil
	}
	switch s.Life.State {
	case lifecycle.Lost, lifecycle.Destroying, lifecycle.Destroyed:
		return nil
	}
	return &LostBox{Box: s.Box, Since: s.Life.Since}
}

// same: it is the same box, and nothing happened to it in between. A store keeps
// whole milliseconds.
func (b *LostBox) same(other LostBox) bool {
	return b != nil && b.Box == other.Box && b.Since.UnixMilli() == other.Since.UnixMilli()
}

// vanished: the session's box is gone, and nobody here has noticed. What was at
// work in it begins again in another. Where nobody was, there is nothing to
// say: it is looked after at once, as whatever is lost, which books its time.
func (n *step) vanished(b LostBox) {
	if !n.OnRecord().same(b) {
		return
	}
	if i := slices.IndexFunc(n.Pending, Effect.inBox); i >= 0 && n.Busy() {
		e, _ := n.drop(n.Pending[i].ID)
		n.turnBroke(e, Failed{Lost: true, Say: "The box was lost again and again. `/ship retry` starts anew from the branch."})
		return
	}
	if n.Busy() { // its work was pushed
		n.meterTurn()
	}
	n.tell(lifecycle.Gone)
}

// inBox: it is a turn's work in its box.
func (e Effect) inBox() bool { return e.Kind == Run || e.Kind == Publish }
