package turn

import (
	"context"
	"errors"
	"fmt"

	"ship/sandbox"
)

// confirmGone asks the provider when a handle says that a box is gone: handles can
// outlive what they lead to, and with the box its work would be given up. A box
// that the provider still has is tried again by a new handle.
func (w *Worker) confirmGone(ctx context.Context, id string, err error) error {
	if !errors.Is(err, sandbox.ErrGone) || ctx.Err() != nil {
		return err
	}
	_, asked := w.Boxes.Attach(ctx, id, w.Life.TTL)
	if errors.Is(asked, sandbox.ErrGone) {
		return err
	}
	// The handle's error is not wrapped: whoever sees ErrGone gives the box up.
	if asked != nil {
		return fmt.Errorf("%w: whether the box is gone could not be asked (%v), a handle says: %v", sandbox.ErrTransient, asked, err)
	}
	return fmt.Errorf("%w: the provider still has the box of which a handle says: %v", sandbox.ErrTransient, err)
}
