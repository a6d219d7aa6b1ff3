package redis

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ship/session"
	"ship/session/redis/redistest"
)

// typical is a delivery of about a kilobyte, as a comment with a few sentences
// becomes, with its two dedupe keys.
func typical(n int64) session.Delivery {
	return session.Delivery{
		Session: session.ID(fmt.Sprintf("gh.812345678.%d", n%500)),
		Keys:    []string{fmt.Sprintf("github:%032d", n), fmt.Sprintf("github:comment.%d", n)},
		Keep:    time.Hour,
		Event: session.Event{
			V: session.EventVersion, Kind: session.Asked, Delivery: fmt.Sprintf("%032d", n),
			Request: &session.Request{
				ID: fmt.Sprintf("c%d", n), Verb: session.Instruct,
				Thread: session.Thread{Platform: "github", Key: "octo/site#4321"},
				By:     session.Person{Login: "octocat"},
				Text:   strings.Repeat("Please make the parser accept trailing commas. ", 15),
			},
		},
	}
}

// bench runs do from a number of goroutines at once and checks afterwards that
// every delivery is there.
func bench(b *testing.B, callers int, do func(*Store, session.Delivery) error, args ...string) {
	s := openAt(b, redistest.Start(b, args...))
	var n atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
				if err := do(s, typical(i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
	ids, err := s.Sessions(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var found int
	for _, id := range ids {
		found += int(s.rdb.XLen(b.Context(), keysOf(id).inbox).Val())
	}
	if found != b.N {
		b.Errorf("%d events are there, want %d", found, b.N)
	}
}

// alone sends a delivery in a script of its own.
func alone(b *testing.B) func(*Store, session.Delivery) error {
	return func(s *Store, d session.Delivery) error {
		p, err := prepare(d)
		if err != nil {
			return err
		}
		s.ingest(b.Context(), []*parcel{p})
		return p.err
	}
}

func grouped(b *testing.B) func(*Store, session.Delivery) error {
	return func(s *Store, d session.Delivery) error {
		_, err := s.Append(b.Context(), d)
		return err
	}
}

// BenchmarkIngest is the script alone, one delivery each, from 32 callers.
func BenchmarkIngest(b *testing.B) { bench(b, 32, alone(b)) }

// BenchmarkAppend compares deliveries sent one by one with those sent in
// groups.
func BenchmarkAppend(b *testing.B) {
	for _, fsync := range []string{"always", "everysec"} {
		for _, callers := range []int{1, 32, 128} {
			b.Run(fmt.Sprintf("fsync=%s/callers=%d/alone", fsync, callers), func(b *testing.B) {
				bench(b, callers, alone(b), "--appendfsync", fsync)
			})
			b.Run(fmt.Sprintf("fsync=%s/callers=%d/grouped", fsync, callers), func(b *testing.B) {
				bench(b, callers, grouped(b), "--appendfsync", fsync)
			})
		}
	}
}
