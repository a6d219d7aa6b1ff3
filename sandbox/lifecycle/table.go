package lifecycle

// transition is one entry of the table.
type transition struct {
	from State
	on   Event
	to   State
}

// table is all that may happen; what is not in it is refused. Two things follow
// from its shape alone. Only an idle box can be asked to pause, and only a turn
// makes a box idle, so between a resume and the next pause there is always a
// turn. And only a paused box can be asked to resume.
func table() [90]transition {
	return [...]transition{
		{Creating, Made, Ready},
		{Creating, MakeFailed, Lost},
		{Creating, SeenRunning, Creating}, // asked for again, it is found by its key
		{Creating, SeenPaused, Creating},
		{Creating, Gone, Lost},
		{Creating, DestroyAsked, Destroying},

		{Ready, Made, Ready},
		{Ready, ResumeDone, Ready},
		{Ready, TurnBegun, Busy},
		{Ready, TurnEnded, Ready}, // it was stopped before it began
		{Ready, SeenRunning, Ready},
		{Ready, SeenPaused, Paused},
		{Ready, Gone, Lost},
		{Ready, DestroyAsked, Destroying},

		{Busy, TurnBegun, Busy},
		{Busy, TurnEnded, Idle},
		{Busy, SeenRunning, Busy},
		{Busy, SeenPaused, Paused}, // not by us: the turn may wake it and go on
		{Busy, Gone, Lost},
		{Busy, DestroyAsked, Destroying},

		{Idle, TurnBegun, Busy},
		{Idle, TurnEnded, Idle},
		{Idle, PauseAsked, Pausing},
		{Idle, PauseFailed, Idle},
		{Idle, SeenRunning, Idle},
		{Idle, SeenPaused, Paused},
		{Idle, Gone, Lost},
		{Idle, DestroyAsked, Destroying},

		{Pausing, PauseAsked, Pausing},
		{Pausing, PauseDone, Paused},
		{Pausing, PauseFailed, Idle},
		{Pausing, SeenRunning, Pausing},
		{Pausing, SeenPaused, Paused},
		{Pausing, Gone, Lost},
		{Pausing, DestroyAsked, Destroying},

		{Paused, TurnEnded, Paused}, // it was paused under the turn
		{Paused, PauseDone, Paused},
		{Paused, ResumeAsked, Resuming},
		{Paused, ResumeFailed, Paused},
		{Paused, SeenRunning, Resuming}, // whatever woke it did not probe it
		{Paused, SeenPaused, Paused},
		{Paused, Gone, Lost},
		{Paused, DestroyAsked, Destroying},

		{Resuming, TurnEnded, Resuming},
		{Resuming, ResumeAsked, Resuming},
		{Resuming, ResumeDone, Ready},
		{Resuming, ResumeFailed, Paused},
		{Resuming, Behind, Lost},
		{Resuming, SeenRunning, Resuming},
		{Resuming, SeenPaused, Resuming}, // not awake yet
		{Resuming, Gone, Lost},
		{Resuming, DestroyAsked, Destroying},

		// One look that misses a box is no proof that it ended, so a lost box is
		// destroyed too. One that comes back is not taken up again.
		{Lost, Made, Lost},
		{Lost, MakeFailed, Lost},
		{Lost, TurnEnded, Lost},
		{Lost, PauseDone, Lost}, // what was under way may answer late
		{Lost, PauseFailed, Lost},
		{Lost, ResumeDone, Lost},
		{Lost, ResumeFailed, Lost},
		{Lost, Behind, Lost},
		{Lost, SeenRunning, Lost},
		{Lost, SeenPaused, Lost},
		{Lost, Gone, Lost},
		{Lost, DestroyAsked, Destroying},

		{Destroying, Made, Destroying},
		{Destroying, MakeFailed, Destroying},
		{Destroying, TurnEnded, Destroying},
		{Destroying, PauseDone, Destroying},
		{Destroying, PauseFailed, Destroying},
		{Destroying, ResumeDone, Destroying},
		{Destroying, ResumeFailed, Destroying},
		{Destroying, Behind, Destroying},
		{Destroying, SeenRunning, Destroying},
		{Destroying, SeenPaused, Destroying},
		{Destroying, Gone, Destroyed},
		{Destroying, DestroyAsked, Destroying},
		{Destroying, DestroyDone, Destroyed},
		{Destroying, DestroyFailed, Destroying},

		{Destroyed, MakeFailed, Destroyed},
		{Destroyed, TurnEnded, Destroyed},
		{Destroyed, PauseDone, Destroyed},
		{Destroyed, PauseFailed, Destroyed},
		{Destroyed, ResumeDone, Destroyed},
		{Destroyed, ResumeFailed, Destroyed},
		{Destroyed, Behind, Destroyed},
		{Destroyed, SeenRunning, Destroyed}, // a list that lags; what stays in it is a stray
		{Destroyed, SeenPaused, Destroyed},
		{Destroyed, Gone, Destroyed},
		{Destroyed, DestroyDone, Destroyed},
		{Destroyed, DestroyFailed, Destroyed},
	}
}
