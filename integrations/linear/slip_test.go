package linear

import (
	"strings"
	"testing"
	"time"
)

// FuzzSlip: nobody's text is taken for ours, whatever it looks like.
func FuzzSlip(f *testing.F) {
	n, err := newNotary([]string{tokenKey})
	if err != nil {
		f.Fatal(err)
	}
	at := time.Unix(1_800_000_000, 0)
	genuine, err := n.sign(kindState, slip{ID: "A", Until: at.Add(time.Hour).Unix()}, "bound")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(genuine, "bound")
	f.Add(genuine, "")
	f.Add("", "bound")
	f.Add(".", "")
	f.Add("e30.AAAA", "\x00")
	f.Fuzz(func(t *testing.T, text, bound string) {
		_, err := n.read(kindState, text, bound, at)
		// Base64 has spare bits at the end of the signature, so that text may differ.
		if good := err == nil; good && (bound != "bound" || !strings.HasPrefix(text, genuine[:len(genuine)-1])) {
			t.Errorf("taken: %q %q", text, bound)
		}
		if _, err := n.read(kindTicket, text, bound, at); err == nil {
			t.Errorf("taken as a ticket: %q", text)
		}
	})
}
