package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

// RunPlaces runs the contract of session.Places. open is as for RunStore.
func RunPlaces(t *testing.T, open func(t *testing.T) session.Places) {
	for name, test := range map[string]func(*placesTest){
		"first come first served":   firstServed,
		"let others pass":           letOthersPass,
		"of one worker":             ofOneWorker,
		"twice is once":             twiceIsOnce,
		"at work already":           atWorkAlready,
		"lapse":                     lapse,
		"who is silent is passed":   silentArePassed,
		"another owner goes on":     anotherOwner,
		"are as random calls claim": randomCalls,
		"never too many":            neverTooMany,
		"end with ctx":              placesEnd,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&placesTest{t, open(t)})
		})
	}
}

type placesTest struct {
	*testing.T
	session.Places
}

// stakeOf is for a session of a person whose worker has room for all. One of
// each person, and two of all, may be at work.
func stakeOf(id session.ID, person string) session.Stake {
	return session.Stake{
		ID: id, Epoch: 1, Worker: "w", Person: person, Keep: time.Hour, Wait: time.Hour, Most: session.Most{Person: 1, All: 2},
	}
}

// take wants a place in the line, zero for a place, and who has got one by that.
func (p *placesTest) take(s session.Stake, want session.Standing) {
	p.Helper()
	got, err := p.Take(p.Context(), s)
	if err != nil {
		p.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		p.Fatalf("%s (-want +got):\n%s", s.ID, d)
	}
}

func (p *placesTest) release(id session.ID, want ...session.ID) {
	p.Helper()
	if next, err := p.Release(p.Context(), id, 1); err != nil || !slices.Equal(next, want) {
		p.Fatalf("after %s comes %v, %v; want %v", id, next, err, want)
	}
}

func waits(line int, full session.Full) session.Standing {
	return session.Standing{Line: line, Full: full}
}

func firstServed(p *placesTest) {
	p.take(stakeOf("a", "ada"), session.Standing{})
	p.take(stakeOf("b", "bob"), session.Standing{})
	p.take(stakeOf("c", "cid"), waits(1, session.FullAll))
	p.take(stakeOf("d", "dan"), waits(2, session.FullAll))
	p.take(stakeOf("c", "cid"), waits(1, session.FullAll))
	p.release("b", "c")
	p.take(stakeOf("d", "dan"), waits(1, session.FullAll))
	p.take(stakeOf("c", "cid"), session.Standing{})
	p.release("d") // leaves the line
	p.release("a")
	p.take(stakeOf("e", "eve"), session.Standing{})
}

func letOthersPass(p *placesTest) {
	p.take(stakeOf("a1", "ada"), session.Standing{})
	p.take(stakeOf("a2", "ada"), waits(1, session.FullPerson))
	p.take(stakeOf("a3", "ada"), waits(2, session.FullPerson))
	p.take(stakeOf("b", "bob"), session.Standing{})
	p.take(stakeOf("c", "cid"), waits(3, session.FullAll))
	p.release("b", "c")
	p.release("a1", "a2")
	p.take(stakeOf("a3", "ada"), waits(1, session.FullPerson))
}

func ofOneWorker(p *placesTest) {
	on := func(worker string, id session.ID) session.Stake {
		s := stakeOf(id, string(id))
		s.Worker, s.Most = worker, session.Most{Worker: 1}
		return s
	}
	p.take(on("w", "a"), session.Standing{})
	p.take(on("w", "b"), waits(1, session.FullWorker))
	p.take(on("v", "c"), session.Standing{})
	p.take(on("v", "d"), waits(2, session.FullWorker))
	p.release("c", "d")
	p.take(on("u", "a"), session.Standing{Next: []session.ID{"b"}}) // another worker has its session
}

func twiceIsOnce(p *placesTest) {
	p.take(stakeOf("a", "ada"), session.Standing{})
	p.take(stakeOf("a", "ada"), session.Standing{})
	p.take(stakeOf("b", "bob"), session.Standing{})
	p.take(stakeOf("c", "cid"), waits(1, session.FullAll))
	p.release("a", "c")
	p.release("a")
	p.take(stakeOf("d", "dan"), waits(1, session.FullAll))
}

func atWorkAlready(p *placesTest) {
	p.take(stakeOf("a", "ada"), session.Standing{})
	p.take(stakeOf("b", "bob"), session.Standing{})
	p.take(stakeOf("c", "ada"), waits(1, session.FullPerson))
	working := stakeOf("c", "ada")
	working.AtWork = true
	p.take(working, session.Standing{})
	p.take(stakeOf("d", "dan"), waits(1, session.FullAll))
	p.release("a") // there is one too many
	p.release("b", "d")
}

func lapse(p *placesTest) {
	brief := stakeOf("a", "ada")
	brief.Keep = short
	p.take(brief, session.Standing{})
	again := stakeOf("b", "bob")
	again.Keep = short
	p.take(again, session.Standing{})
	p.take(stakeOf("b", "bob"), session.Standing{}) // it is kept for longer now
	await(p.T, "the place to lapse", func() bool {
		got, err := p.Take(p.Context(), stakeOf("c", "cid"))
		return err == nil && got.Line == 0
	})
	p.take(stakeOf("d", "dan"), waits(1, session.FullAll))
	p.release("a") // has none any more
}

func silentArePassed(p *placesTest) {
	p.take(stakeOf("a", "ada"), session.Standing{})
	p.take(stakeOf("b", "bob"), session.Standing{})
	silent := stakeOf("c", "cid")
	silent.Wait = short
	p.take(silent, waits(1, session.FullAll))
	p.take(stakeOf("d", "dan"), waits(2, session.FullAll))
	time.Sleep(2 * short) // the silence is what is tested
	p.release("a", "d")
	p.take(stakeOf("c", "cid"), waits(1, session.FullAll)) // its worker was busy for a while
	p.take(silent, waits(1, session.FullAll))
	time.Sleep(12 * short)
	p.release("b")
	p.take(stakeOf("e", "eve"), session.Standing{})
	p.take(stakeOf("f", "flo"), waits(1, session.FullAll)) // nobody is before it
}

// anotherOwner: a session that another worker has taken over keeps what it had,
// and the one before changes nothing any more.
func anotherOwner(p *placesTest) {
	p.take(stakeOf("a", "ada"), session.Standing{})
	p.take(stakeOf("b", "bob"), session.Standing{})
	p.take(stakeOf("c", "cid"), waits(1, session.FullAll))
	p.take(stakeOf("d", "dan"), waits(2, session.FullAll))
	later := func(id session.ID, person string) session.Stake {
		s := stakeOf(id, person)
		s.Epoch, s.Worker = 2, "v"
		return s
	}
	p.take(later("a", "ada"), session.Standing{})
	p.take(later("c", "cid"), waits(1, session.FullAll))
	p.take(stakeOf("c", "cid"), waits(1, session.FullAll))
	p.release("a")
	p.release("c")
	p.take(later("d", "dan"), waits(2, session.FullAll))
	p.release("b", "c")
	p.take(stakeOf("c", "cid"), session.Standing{})
	p.release("c")
	if next, err := p.Release(p.Context(), "c", 2); err != nil || !slices.Equal(next, []session.ID{"d"}) {
		p.Errorf("then %v, %v", next, err)
	}
}

// randomCalls compares with a model what many calls in a row answer.
func randomCalls(p *placesTest) {
	script := make([]byte, 3000)
	seed := uint64(time.Now().UnixNano())
	p.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range script {
		script[i] = byte(r.IntN(256))
	}
	PlayPlaces(p.T, p.Places, script)
}

// PlayPlaces makes the calls that a script of bytes stands for, two for each,
// and compares every answer with that of a simple model.
func PlayPlaces(t *testing.T, p session.Places, script []byte) {
	var m placesModel
	for i := 0; i+1 < len(script); i += 2 {
		id, what := session.ID(fmt.Sprint(script[i]%12)), script[i+1]
		if what%4 == 0 {
			next, err := p.Release(t.Context(), id, 1)
			if want := m.release(id); err != nil || !slices.Equal(next, want) {
				t.Fatalf("call %d, release %s: %v, %v; want %v", i/2, id, next, err, want)
			}
			continue
		}
		s := stakeOf(id, fmt.Sprint(script[i]%4))
		s.Worker, s.Most = fmt.Sprint(what/32%2), session.Most{Worker: 2, Person: 2, All: 3}
		s.AtWork = what%32 == 31
		got, err := p.Take(t.Context(), s)
		if d := cmp.Diff(m.take(s), got); err != nil || d != "" {
			t.Fatalf("call %d, take %+v: %v (-want +got):\n%s", i/2, s, err, d)
		}
		m.check(t)
	}
}

// placesModel knows no time and no epochs. Both lists are in the order in which
// sessions came there.
type placesModel struct{ held, line []session.Stake }

func at(list []session.Stake, id session.ID) int {
	return slices.IndexFunc(list, func(s session.Stake) bool { return s.ID == id })
}

func without(list []session.Stake, id session.ID) []session.Stake {
	return slices.DeleteFunc(list, func(s session.Stake) bool { return s.ID == id })
}

func (m *placesModel) full(s session.Stake) session.Full {
	worker, person := 0, 0
	for _, h := range m.held {
		if h.Worker == s.Worker {
			worker++
		}
		if h.Person == s.Person {
			person++
		}
	}
	switch {
	case person >= s.Most.Person:
		return session.FullPerson
	case len(m.held) >= s.Most.All:
		return session.FullAll
	case worker >= s.Most.Worker:
		return session.FullWorker
	}
	return ""
}

func (m *placesModel) take(s session.Stake) session.Standing {
	if s.AtWork || at(m.held, s.ID) >= 0 {
		m.held = append(without(m.held, s.ID), s)
		m.line = without(m.line, s.ID)
		return session.Standing{Next: m.serve()}
	}
	if i := at(m.line, s.ID); i >= 0 {
		m.line[i] = s
	} else {
		m.line = append(m.line, s)
	}
	m.serve()
	if at(m.held, s.ID) >= 0 {
		return session.Standing{}
	}
	return waits(at(m.line, s.ID)+1, m.full(s))
}

func (m *placesModel) release(id session.ID) []session.ID {
	m.held, m.line = without(m.held, id), without(m.line, id)
	return m.serve()
}

// serve always looks at the whole line.
func (m *placesModel) serve() (next []session.ID) {
	for _, s := range slices.Clone(m.line) {
		if m.full(s) == "" {
			m.line, m.held = without(m.line, s.ID), append(m.held, s)
			next = append(next, s.ID)
		}
	}
	return next
}

// check: who waits has to.
func (m *placesModel) check(t *testing.T) {
	t.Helper()
	for _, s := range m.line {
		if m.full(s) == "" {
			t.Fatalf("%s waits for nothing", s.ID)
		}
	}
}

// neverTooMany: of many that take and release at once, never more hold places
// than may, and all have their turn.
func neverTooMany(p *placesTest) {
	var all, most atomic.Int64
	var ofPerson [3]atomic.Int64
	var crowd sync.WaitGroup
	for n := range 12 {
		crowd.Go(func() {
			s := stakeOf(session.ID(fmt.Sprint(n)), fmt.Sprint(n%3))
			for range 4 {
				await(p.T, "a place", func() bool {
					got, err := p.Take(p.Context(), s)
					return err == nil && got.Line == 0
				})
				if ofPerson[n%3].Add(1) > 1 || all.Add(1) > 2 {
					p.Error("too many have a place")
				}
				most.Store(max(most.Load(), all.Load()))
				ofPerson[n%3].Add(-1)
				all.Add(-1)
				if _, err := p.Release(p.Context(), s.ID, s.Epoch); err != nil {
					p.Error(err)
				}
			}
		})
	}
	crowd.Wait()
	p.take(stakeOf("x", "0"), session.Standing{})
	p.take(stakeOf("y", "1"), session.Standing{})
	p.Logf("at most %d at once", most.Load())
}

func placesEnd(p *placesTest) {
	ctx, cancel := context.WithCancelCause(p.Context())
	cancel(session.ErrShutdown)
	_, taken := p.Take(ctx, stakeOf("a", "ada"))
	_, released := p.Release(ctx, "a", 1)
	for _, err := range []error{taken, released} {
		if !errors.Is(err, session.ErrShutdown) && !errors.Is(err, context.Canceled) {
			p.Errorf("got %v", err)
		}
	}
}
