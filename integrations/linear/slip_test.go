package linear

import (
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
	f.Add(genuine[:len(genuine)-9]+"\r"+genuine[len(genuine)-9:], "bound")
	f.Add(genuine+"\n", "bound")
	f.Add("", "bound")
	f.Add(".", "")
	f.Add("e30.AAAA", "\x00")
	f.Fuzz(func(t *testing.T, text, bound string) {
		_, err := n.read(kindState, text, bound, at)
		if good := err == nil; good && (bound != "bound" || text != genuine) {
			t.Errorf("taken: %q %q", text, bound)
		}
		if _, err := n.read(kindTicket, text, bound, at); err == nil {
			t.Errorf("taken as a ticket: %q", text)
		}
	})
}
