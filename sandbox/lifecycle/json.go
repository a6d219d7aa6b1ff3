package lifecycle

import (
	"encoding/json"
	"fmt"
	"time"
)

// stored is a Box as it is kept: short, for there may be many. Times are in
// milliseconds since 1970, zero for none.
type stored struct {
	Session    string `json:"s,omitempty"`
	ID         string `json:"id,omitempty"`
	Generation int64  `json:"g,omitempty"`
	State      State  `json:"st,omitempty"`
	Since      int64  `json:"at,omitempty"`
	Born       int64  `json:"b,omitempty"`
	Begun      int64  `json:"tb,omitempty"`
	Ended      int64  `json:"te,omitempty"`
	Active     int64  `json:"ac,omitempty"`
	Attached   int64  `json:"ca,omitempty"`
	Until      int64  `json:"u,omitempty"`
	Set        int64  `json:"us,omitempty"`
	Marker     int64  `json:"m,omitempty"`
	Tries      int    `json:"t,omitempty"`
	Warned     bool   `json:"w,omitempty"`
}

// MarshalJSON implements json.Marshaler. What is less than a millisecond is
// left out, which leaves times in their order.
func (b Box) MarshalJSON() ([]byte, error) {
	return json.Marshal(stored{
		Session: b.Session, ID: b.ID, Generation: b.Generation, State: b.State,
		Since: milli(b.Since), Born: milli(b.Born), Begun: milli(b.Begun), Ended: milli(b.Ended), Active: milli(b.Active),
		Attached: milli(b.Attached), Until: milli(b.Until), Set: milli(b.Set),
		Marker: b.Marker, Tries: b.Tries, Warned: b.Warned,
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Box) UnmarshalJSON(text []byte) error {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("read what is known of a box: %w", err)
	}
	*b = Box{
		Session: s.Session, ID: s.ID, Generation: s.Generation, State: s.State,
		Since: moment(s.Since), Born: moment(s.Born), Begun: moment(s.Begun), Ended: moment(s.Ended), Active: moment(s.Active),
		Attached: moment(s.Attached), Until: moment(s.Until), Set: moment(s.Set),
		Marker: s.Marker, Tries: s.Tries, Warned: s.Warned,
	}
	return nil
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
