package slack

import (
	"strconv"
	"strings"
)

// shown is the living message of a thread: the one that changes with the turn.
// It is kept as the thread's ref, "<turn>.<message>".
type shown struct {
	// turn that it is about; 0: the first, which has not begun yet, and settled:
	// none, because nothing was begun.
	turn int
	// ts is the message; empty: there is none.
	ts string
}

// settled stands for a turn that never was.
const settled = -1

// unbound: it was posted before there was a turn, and waits for the first.
func (s shown) unbound() bool { return s.ts != "" && s.turn == 0 }

func (s shown) String() string {
	if s.ts == "" {
		return ""
	}
	turn := strconv.Itoa(s.turn)
	if s.turn == settled {
		turn = "x"
	}
	return turn + "." + s.ts
}

// parseShown reads what was kept. What cannot be read was never shown.
func parseShown(ref string) shown {
	turn, ts, ok := strings.Cut(ref, ".")
	if !ok || !validTS.MatchString(ts) {
		return shown{}
	}
	if turn == "x" {
		return shown{settled, ts}
	}
	n, err := strconv.Atoi(turn)
	if err != nil || n < 0 {
		return shown{}
	}
	return shown{n, ts}
}
