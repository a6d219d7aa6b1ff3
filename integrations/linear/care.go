package linear

import (
	"context"
	"errors"
)

// care shows on the issue that work has begun.
func (w *work) care(context.Context) error { return errors.New("to be written") }
