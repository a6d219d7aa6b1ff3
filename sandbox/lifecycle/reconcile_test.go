package lifecycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox"
)

const grace = 10 * time.Minute

// listed is a box in a list that was asked for an hour after dawn.
func listed(session, id string, generation int64, age time.Duration) sandbox.Info {
	return sandbox.Info{ID: id, Key: session, Generation: generation, State: sandbox.Running, Created: at(time.Hour - age)}
}

func onRecord(session, id string, generation int64, s State) Record {
	return Record{Box: Box{Session: session, ID: id, Generation: generation, State: s, Since: dawn}}
}

func leased(r Record, lease int64) Record {
	r.Lease = lease
	return r
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	const old, young = time.Hour, time.Minute
	paused := listed("s", "a", 1, old)
	paused.State = sandbox.Paused
	fresh := onRecord("s", "a", 1, Ready)
	fresh.Box.Since = at(55 * time.Minute)
	away := onRecord("s", "a", 1, Idle)
	away.Away = true
	ageless := listed("s", "a", 1, 0)
	ageless.Created = time.Time{}
	for _, c := range []struct {
		name    string
		boxes   []sandbox.Info
		records []Record
		want    []string // id, verdict, event, minutes until
	}{
		{"as it should be", []sandbox.Info{listed("s", "a", 1, old)}, []Record{onRecord("s", "a", 1, Busy)}, []string{"a keep seen running"}},
		{"paused", []sandbox.Info{paused}, []Record{onRecord("s", "a", 1, Pausing)}, []string{"a keep seen paused"}},
		{"a stray", []sandbox.Info{listed("s", "a", 1, old)}, nil, []string{"a end"}},
		{"a young stray", []sandbox.Info{listed("s", "a", 1, young)}, nil, []string{"a leave 69"}},
		{"of no age", []sandbox.Info{ageless}, nil, []string{"a leave 70"}},
		{"of somebody else", []sandbox.Info{listed("", "a", 1, old)}, nil, nil},
		{"given up", []sandbox.Info{listed("s", "a", 1, young)}, []Record{leased(onRecord("s", "a", 1, Lost), 2)}, []string{"a end gone"}},
		{"ended, and listed", []sandbox.Info{listed("s", "a", 1, old)}, []Record{onRecord("s", "a", 1, Destroyed)}, []string{"a end gone"}},

		{"two, the newer on record", []sandbox.Info{listed("s", "a", 1, old), listed("s", "b", 2, old)}, []Record{onRecord("s", "b", 2, Idle)},
			[]string{"a end", "b keep seen running"}},
		{"two, the older on record, nobody at it", []sandbox.Info{listed("s", "a", 1, old), listed("s", "b", 2, old)}, []Record{onRecord("s", "a", 1, Idle)},
			[]string{"a keep seen running", "b end"}},
		{"two, the newer is just made", []sandbox.Info{listed("s", "a", 1, old), listed("s", "b", 2, old)}, []Record{leased(onRecord("s", "a", 1, Idle), 2)},
			[]string{"a keep seen running", "b leave"}},
		{"none on record, one is being found", []sandbox.Info{listed("s", "a", 1, old), listed("s", "b", 2, old), listed("s", "c", 2, 2*old)},
			[]Record{leased(onRecord("s", "", 3, Creating), 3)}, []string{"a end", "b leave", "c end"}},
		{"given up, and another is being found", []sandbox.Info{listed("s", "a", 2, old), listed("s", "b", 1, old)},
			[]Record{leased(onRecord("s", "a", 2, Lost), 3)}, []string{"a end gone", "b leave"}},
		{"none on record, nobody at it", []sandbox.Info{listed("s", "a", 1, old), listed("s", "b", 2, old)}, []Record{onRecord("s", "", 0, "")},
			[]string{"a end", "b end"}},

		{"not listed", nil, []Record{onRecord("s", "a", 1, Paused)}, []string{"a lose gone"}},
		{"not listed yet", nil, []Record{fresh}, []string{"a leave 65"}},
		{"listed elsewhere", nil, []Record{away}, nil},
		{"ended, and not listed", nil, []Record{onRecord("s", "a", 1, Destroying)}, []string{"a lose gone"}},
		{"never made", nil, []Record{onRecord("s", "", 1, Creating)}, []string{" lose gone"}},
		{"being made", nil, []Record{leased(onRecord("s", "", 1, Creating), 1)}, nil},
		{"over", nil, []Record{onRecord("s", "a", 1, Destroyed), onRecord("r", "b", 1, Lost), onRecord("q", "", 0, "")}, nil},
	} {
		var got []string
		for _, f := range Reconcile(Listing{c.boxes, at(time.Hour)}, c.records, grace) {
			text := fmt.Sprintf("%s %s", f.ID, f.Verdict)
			if f.Event != "" {
				text += " " + string(f.Event)
			}
			if !f.At.IsZero() {
				text += fmt.Sprintf(" %.0f", f.At.Sub(dawn).Minutes())
			}
			if f.Reason == "" {
				t.Errorf("%s: no reason for %s", c.name, text)
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// scene is a random list and random records of a few sessions.
func scene(rng *rand.Rand) (l Listing, records []Record) {
	l.At = at(time.Hour)
	states := append(States(), "")
	id := 0
	for s := range 1 + rng.IntN(5) {
		session := fmt.Sprint("s", s)
		var ids []string
		for range rng.IntN(5) {
			id++
			b := listed(session, fmt.Sprint("b", id), 1+rng.Int64N(4), time.Duration(rng.IntN(30))*time.Minute)
			if rng.IntN(3) == 0 {
				b.State = sandbox.Paused
			}
			if rng.IntN(10) == 0 {
				b.Key = ""
			}
			ids = append(ids, b.ID)
			l.Boxes = append(l.Boxes, b)
			if rng.IntN(4) == 0 { // pages overlap
				b.State = sandbox.Running
				l.Boxes = append(l.Boxes, b)
			}
		}
		if rng.IntN(4) == 0 {
			continue
		}
		r := onRecord(session, "gone", 1+rng.Int64N(4), states[rng.IntN(len(states))])
		if len(ids) > 0 && rng.IntN(4) > 0 {
			r.Box.ID = ids[rng.IntN(len(ids))]
		}
		if r.Box.State == Creating || r.Box.State == "" {
			r.Box.ID = ""
		}
		r.Box.Since = at(time.Duration(rng.IntN(60)) * time.Minute)
		r.Lease = max(0, rng.Int64N(7)-2)
		r.Away = rng.IntN(5) == 0
		records = append(records, r)
	}
	return l, records
}

// carryOut does what was found.
func carryOut(t *testing.T, l Listing, records []Record, found []Finding) (Listing, []Record) {
	t.Helper()
	left := Listing{At: l.At}
	for _, b := range l.Boxes {
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.ID == b.ID && f.Verdict == End }) {
			left.Boxes = append(left.Boxes, b)
		}
	}
	after := slices.Clone(records)
	for i, r := range after {
		for _, f := range found {
			if f.Event == "" || f.Session != r.Box.Session || f.ID != r.Box.ID {
				continue
			}
			b, err := r.Box.Apply(f.Event, l.At)
			if err != nil {
				t.Fatalf("%+v: %v", f, err)
			}
			after[i].Box = b
		}
	}
	return left, after
}

// TestReconcileAnyway: in any order, and told once more, the same is found; what
// was done has not to be done again; and what must be left alone is.
func TestReconcileAnyway(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 5_000 {
		l, records := scene(rng)
		found := Reconcile(l, records, grace)
		mixed, shuffled := Listing{slices.Clone(l.Boxes), l.At}, slices.Clone(records)
		rng.Shuffle(len(mixed.Boxes), func(i, j int) { mixed.Boxes[i], mixed.Boxes[j] = mixed.Boxes[j], mixed.Boxes[i] })
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if !slices.Equal(found, Reconcile(mixed, shuffled, grace)) {
			t.Fatalf("in another order, other findings: %s", cmp.Diff(found, Reconcile(mixed, shuffled, grace)))
		}
		for _, f := range found {
			spared(t, f, l, records)
		}
		left, after := carryOut(t, l, records, found)
		for _, f := range Reconcile(left, after, grace) {
			if f.Verdict == End || f.Verdict == Lose {
				t.Fatalf("still to do: %+v\nfirst found: %+v\nboxes: %+v\nrecords: %+v", f, found, l.Boxes, records)
			}
		}
		if t.Failed() {
			t.Fatalf("boxes: %+v\nrecords: %+v", l.Boxes, records)
		}
	}
}

// spared: what is ended is neither in use, nor young, nor what a lease makes.
func spared(t *testing.T, f Finding, l Listing, records []Record) {
	t.Helper()
	if f.Verdict != End {
		return
	}
	i := slices.IndexFunc(l.Boxes, func(b sandbox.Info) bool { return b.ID == f.ID && b.Key != "" })
	if i < 0 {
		t.Errorf("%+v: it is not listed as ours", f)
		return
	}
	b := l.Boxes[i]
	for _, r := range records {
		if r.Box.Session != f.Session {
			continue
		}
		if r.Box.ID == b.ID {
			if s := r.Box.State; s != Lost && s != Destroying && s != Destroyed {
				t.Errorf("%+v: it is on record as %s", f, s)
			}
			return
		}
		if r.Lease > 0 && b.Generation >= r.Lease {
			t.Errorf("%+v: its lease lives", f)
		}
	}
	if l.At.Sub(b.Created) < grace {
		t.Errorf("%+v: it is %s old", f, l.At.Sub(b.Created))
	}
}
