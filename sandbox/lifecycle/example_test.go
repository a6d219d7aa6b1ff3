package lifecycle_test

import (
	"fmt"
	"time"

	"ship/sandbox/lifecycle"
)

// A turn has ended, nobody says anything for a while, and then somebody does.
func Example() {
	p, now := lifecycle.Default(), time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	box := lifecycle.New("session", 1, now)
	expires := now.Add(p.TTL)
	tell := func(events ...lifecycle.Event) {
		for _, e := range events {
			var err error
			if box, err = box.Apply(e, now); err != nil {
				fmt.Println(err)
			}
		}
	}
	tell(lifecycle.Made)
	box = box.Attach(now)
	tell(lifecycle.TurnBegun, lifecycle.TurnEnded)
	for range 2 {
		d, err := lifecycle.Decide(box, lifecycle.Reading{Expires: expires, At: now}, p, now)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(now.Format(time.TimeOnly), box.State, "→", d.Action, d.At.Format(time.TimeOnly), "as", d.Reason)
		switch d.Action {
		case lifecycle.Nothing:
			now = d.At
		case lifecycle.Pause:
			tell(lifecycle.PauseAsked, lifecycle.PauseDone)
		}
	}
	now = now.Add(20 * time.Minute)
	fmt.Println(now.Format(time.TimeOnly), box.State, "→", lifecycle.Enter(box, p, now).Step)
	tell(lifecycle.TurnBegun)
	// Output:
	// 09:00:00 idle → nothing 09:05:00 as nothing is due
	// 09:05:00 idle → pause 09:05:00 as it is idle
	// 09:25:00 paused → resume
	// box "" of session: a box does not do that: "turn begun" while "paused"
}
