package turn

import (
	"context"
	"errors"
	"fmt"

	"ship/sandbox"
)

// verdict asks the provider when a handle says that a box is gone: handles can
// outlive what they lead to, and with the box its work would be given up. A box
// that the provider still has is tried again by a new handle.
func (w *Worker) verdict(ctx context.Context, id string, err error) error {
	if !errors.Is(err, sandbox.ErrGone) || ctx.Err() != nil {
		return err
	}
	_, asked := w.Boxes.Attach(ctx, id, w.Life.TTL)
	if errors.Is(asked, sandbox.ErrGone) {
		return err
	}
	return fmt.Errorf("%w: a handle says that the box is gone, and the provider does not: %v", sandbox.ErrTransient, err)
}
