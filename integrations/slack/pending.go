package slack

import (
	"context"
	"errors"

	"ship/session"
)

var errPending = errors.New("slack: not there yet")

func (w *work) admit(context.Context) (session.Performed, error) {
	return session.Performed{}, errPending
}
