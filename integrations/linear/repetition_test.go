package linear

import (
	"testing"
	"time"

	"ship/session/memory"
)

// TestLateRepetition: Linear sends again for hours, with the time of the first
// try. It is taken if the first try was lost, and only then, whatever the
// repetition is called.
func TestLateRepetition(t *testing.T) {
	t.Parallel()
	store := memory.New()
	at := now
	r := receiver(t)
	r.now = func() time.Time { return at }
	h, body := delegated().sign(t)
	for i, late := range []time.Duration{time.Minute, time.Hour, 7 * time.Hour} {
		at = now.Add(late)
		if i == 2 { // a replay can choose what is not signed
			h.Set(headerDelivery, "another")
		}
		got, err := r.Receive(t.Context(), h, body)
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := store.Append(t.Context(), got.Deliveries[0])
		if err != nil || receipt.Seq != 1 || receipt.Duplicate != (i > 0) {
			t.Errorf("%s late: %+v, %v", late, receipt, err)
		}
		if keep := got.Deliveries[0].Keep; keep <= maxAge+maxSkew {
			t.Errorf("keys are kept for %s only", keep)
		}
	}
}

func (r *Receiver) withClock(at time.Time) *Receiver {
	r.now = func() time.Time { return at }
	return r
}
