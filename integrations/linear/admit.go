package linear

import (
	"context"
	"errors"

	"ship/session"
)

// admit answers who asks, whether they may, and what it is about.
func (w *work) admit(context.Context) (session.Performed, error) {
	return session.Performed{}, errors.New("to be written")
}
