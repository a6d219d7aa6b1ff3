package session

import (
	"encoding/json"
	"fmt"
	"time"

	"ship/sandbox/lifecycle"
)

// Encode returns the state as it is stored.
func (s State) Encode() ([]byte, error) {
	s.V = StateVersion
	if s.Life != nil { // both are in the state already
		life := *s.Life
		life.Session, life.ID = "", ""
		s.Life = &life
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state of %s: %w", s.ID, err)
	}
	return b, nil
}

// stored is a state as it lies in the store, with what earlier releases wrote.
type stored struct {
	*State
	// Rests is since when the box was idle.
	Rests time.Time `json:"re"`
}

// DecodeState reads a stored state; none at all is a new session.
func DecodeState(id ID, b []byte) (State, error) {
	s := State{V: StateVersion, ID: id}
	if len(b) == 0 {
		return s, nil
	}
	old := stored{State: &s}
	if err := json.Unmarshal(b, &old); err != nil {
		return State{}, fmt.Errorf("decode state of %s: %w", id, err)
	}
	if s.V > StateVersion {
		return State{}, fmt.Errorf("decode state of %s: %w", id, ErrTooNew)
	}
	s.name(old.Rests)
	return s, nil
}

// name says whose life it is. A box that an earlier release made gets one.
func (s *State) name(rests time.Time) {
	if s.Box == "" {
		s.Life = nil
		return
	}
	if s.Life == nil {
		s.Life = &lifecycle.Box{State: lifecycle.Idle, Since: rests, Born: rests, Active: rests}
		if s.Busy() && s.Turn.Stage != Preparing {
			s.Life.State, s.Life.Begun = lifecycle.Busy, rests
		}
	}
	s.Life.Session, s.Life.ID = string(s.ID), s.Box
}
