package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"ship/sandbox"
)

// Listing is what a provider lists.
type Listing struct {
	Boxes []sandbox.Info
	// At is when it was asked for. Ages are told by this time.
	At time.Time
}

// Record is what we have of a session. Records are read after the listing: a
// box that was made and noted in between would otherwise look like a stray.
type Record struct {
	// Box that the session has. The zero Box but for its Session: none.
	Box Box
	// Lease is the generation under which somebody holds the session now, and
	// may be making a box. Zero: nobody does.
	Lease int64
	// Away: the box is with another provider, or with this one on another machine, so
	// that this listing need not have it.
	Away bool
}

// Verdict on a box or a record.
type Verdict string

// The verdicts.
const (
	// Keep the box. If it is on record, apply Finding.Event at Listing.At.
	Keep Verdict = "keep"
	// Leave the box alone until Finding.At: it is too young to be judged, or
	// somebody may just be making it. A zero time: until the lease ends.
	Leave Verdict = "leave"
	// End the box: nobody will ever ask for it. If there is an Event, apply it
	// when that is done.
	End Verdict = "end"
	// Lose the record: apply Gone at Listing.At.
	Lose Verdict = "lose"
)

// Finding is what to do with one box, or with one record that has no box.
type Finding struct {
	Session string
	ID      string
	Verdict Verdict
	Event   Event
	At      time.Time
	Reason  string
}

// Reconcile holds the provider's list against our records. A box of a session
// that is not among the records is a stray. Neither a box nor a record younger
// than grace is judged. What it finds is the same in whatever order the boxes
// and the records come and however often a box is listed; and when all of it
// is done, it finds nothing more to do. Boxes without a key are not ours.
//
// Of several boxes of one session, the one on record stays, for it has the work
// and the agent's memory. While somebody holds the session, so do those of
// that lease, and the newest generation if none is on record: it may have been
// found by its key, and be on record in a moment. All others are ended.
func Reconcile(l Listing, records []Record, grace time.Duration) []Finding {
	j := judge{at: l.At, grace: grace, records: bySession(records)}
	groups := map[string][]sandbox.Info{}
	for _, b := range distinct(l.Boxes) {
		groups[b.Key] = append(groups[b.Key], b)
	}
	for session, boxes := range groups {
		j.session(session, boxes)
	}
	for _, r := range j.records {
		j.record(r, groups[r.Box.Session])
	}
	slices.SortFunc(j.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.ID, b.ID))
	})
	return j.found
}

// judge collects findings.
type judge struct {
	at      time.Time
	grace   time.Duration
	records map[string]Record
	found   []Finding
}

// bySession keeps one record of each session: the newest.
func bySession(records []Record) map[string]Record {
	m := map[string]Record{}
	for _, r := range records {
		if old, ok := m[r.Box.Session]; !ok || newer(r, old) {
			m[r.Box.Session] = r
		}
	}
	return m
}

func newer(a, b Record) bool {
	return cmp.Or(cmp.Compare(a.Box.Generation, b.Box.Generation), a.Box.Since.Compare(b.Box.Since),
		cmp.Compare(a.Lease, b.Lease), cmp.Compare(a.Box.ID, b.Box.ID), cmp.Compare(a.Box.State, b.Box.State)) > 0
}

// distinct drops what is listed twice, as when pages overlap, and what is not
// ours. The newest generation comes first.
func distinct(boxes []sandbox.Info) []sandbox.Info {
	var kept []sandbox.Info
	for _, b := range boxes {
		if b.Key != "" {
			kept = append(kept, b)
		}
	}
	slices.SortFunc(kept, func(a, b sandbox.Info) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), -cmp.Compare(a.State, b.State), // running is the worse news
			-cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Key, b.Key), a.Created.Compare(b.Created))
	})
	kept = slices.CompactFunc(kept, func(a, b sandbox.Info) bool { return a.ID == b.ID })
	slices.SortFunc(kept, func(a, b sandbox.Info) int {
		return cmp.Or(-cmp.Compare(a.Generation, b.Generation), -a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return kept
}

// session judges the boxes of one session, the newest generation first.
func (j *judge) session(session string, boxes []sandbox.Info) {
	r := j.records[session]
	known := slices.ContainsFunc(boxes, r.has)
	newest := slices.IndexFunc(boxes, func(b sandbox.Info) bool { return b.ID != r.Box.ID })
	for i, b := range boxes {
		f := Finding{Session: session, ID: b.ID}
		switch {
		case r.has(b):
			f.Verdict, f.Event, f.Reason = Keep, seen(b), "it is on record"
		case b.ID == r.Box.ID:
			f.Verdict, f.Event, f.Reason = End, Gone, "it was given up"
		case r.Lease > 0 && (b.Generation >= r.Lease || !known && i == newest):
			f.Verdict, f.Reason = Leave, "somebody may just be making it"
		case j.young(b.Created):
			f.Verdict, f.At, f.Reason = Leave, j.grown(b.Created), "it may be on record in a moment"
		default:
			f.Verdict, f.Reason = End, "no session has it"
		}
		j.found = append(j.found, f)
	}
}

// record judges a record that the list has no box for.
func (j *judge) record(r Record, boxes []sandbox.Info) {
	listed := slices.ContainsFunc(boxes, func(b sandbox.Info) bool { return b.ID == r.Box.ID })
	if listed || r.Away || r.Box.State == "" || r.Box.State == Destroyed || r.Box.State == Lost {
		return
	}
	if r.Box.State == Creating && r.Lease > 0 {
		return
	}
	f := Finding{Session: r.Box.Session, ID: r.Box.ID, Verdict: Lose, Event: Gone, Reason: "the provider does not have it"}
	if j.young(r.Box.Since) {
		f.Verdict, f.Event, f.At, f.Reason = Leave, "", j.grown(r.Box.Since), "the list may not have it yet"
	}
	j.found = append(j.found, f)
}

// young: too young to be judged. What does not say when it was made is.
func (j *judge) young(born time.Time) bool { return born.IsZero() || j.at.Sub(born) < j.grace }

// grown is when it is old enough to be judged.
func (j *judge) grown(born time.Time) time.Time {
	if born.IsZero() || born.After(j.at) {
		born = j.at
	}
	return born.Add(j.grace)
}

// has tells whether this is the box on record, and to be used again.
func (r Record) has(b sandbox.Info) bool {
	switch r.Box.State {
	case "", Creating, Lost, Destroying, Destroyed:
		return false
	}
	return b.ID == r.Box.ID
}

// seen is the event that a listed box makes.
func seen(b sandbox.Info) Event {
	if b.State == sandbox.Paused {
		return SeenPaused
	}
	return SeenRunning
}
