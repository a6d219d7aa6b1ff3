package session

import (
	"context"
	"time"
)

// Places are those for boxes at work, which all workers share. Who finds none
// free waits in one line: first come, first served, but somebody for whom there
// is no place lets others pass.
type Places interface {
	// Take takes a place for a session, or one in the line, and tells which.
	// Taking what is held already is once, and keeps it for Stake.Keep from now.
	// Who waits has to ask again within Stake.Wait, and may have been given a
	// place meanwhile; the place in the line stays the same session's, whichever
	// worker asks.
	Take(ctx context.Context, s Stake) (Standing, error)
	// Release gives back the place of a session, or leaves the line, and tells
	// who has got a place by that. An owner of the session with a later epoch
	// than the one given keeps it. Twice is once.
	Release(ctx context.Context, id ID, epoch int64) (next []ID, err error)
}

// Stake is what a session asks of Places.
type Stake struct {
	ID ID
	// Epoch of the session's lease: an owner with an older one changes nothing.
	Epoch int64
	// Worker names the process that looks after the box, and Person whom the
	// turn counts for.
	Worker, Person string
	// Keep is how long the place is held if nobody gives it back, and Wait how
	// long the one in the line is if nobody asks again.
	Keep, Wait time.Duration
	// AtWork: the box is at work already, so there has to be a place for it,
	// beyond all limits if need be.
	AtWork bool
	Most   Most
}

// Most is how many places may be held at the same time: by one worker, by one
// person's turns, and by all. Zero: no limit.
type Most struct{ Worker, Person, All int }

// Standing is what came of asking for a place.
type Standing struct {
	// Line is the place in the line, from 1; zero: there is a place.
	Line int
	// Full is which of the limits has to be waited for.
	Full Full
	// Next are other sessions that have got a place in passing.
	Next []ID
}

// Full names a limit that is reached.
type Full string

// The limits: those of Most.
const (
	FullPerson Full = "person"
	FullAll    Full = "all"
	FullWorker Full = "worker"
)
