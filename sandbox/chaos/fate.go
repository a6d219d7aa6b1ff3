package chaos

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// odds are how many times a fault strikes one session at most, and among how
// many of its first occasions.
type odds struct {
	fault        Fault
	most, within int
}

// faultOdds: a turn begins in four boxes at most, and what happens in a box is tried
// five times, so no fault alone may use that up. The occasions are about as many
// as two short turns have.
func faultOdds() []odds {
	return []odds{
		{Killed, 2, 120},
		{Stale, 1, 8},
		{Hidden, 1, 6},
		{Misstated, 1, 6},
		{Unanswered, 2, 10},
		{Slow, 6, 400},
		{Cut, 3, 300},
		{Older, 1, 1},
	}
}

// fate is what will happen to one session. A nil fate: nothing.
type fate struct {
	mu     sync.Mutex
	random *rand.Rand
	// strike lists the occasions that a fault takes, and occasions how many there were.
	strike    map[Fault][]int
	occasions map[Fault]int
}

// newFate is the same for the same seed and session.
func newFate(seed uint64, key string) *fate {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key)) // it never fails
	f := &fate{random: rand.New(rand.NewPCG(seed, hash.Sum64())), strike: map[Fault][]int{}, occasions: map[Fault]int{}}
	for _, o := range faultOdds() {
		for range f.random.IntN(o.most + 1) {
			f.strike[o.fault] = append(f.strike[o.fault], 1+f.random.IntN(o.within))
		}
	}
	return f
}

// strikes counts an occasion and tells whether the fault takes it.
func (f *fate) strikes(kind Fault) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.occasions[kind]++
	return slices.Contains(f.strike[kind], f.occasions[kind])
}

// upTo draws a number from 0 to n-1.
func (f *fate) upTo(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}

// pause draws how long something slow takes.
func (f *fate) pause() time.Duration {
	return time.Duration(100+f.upTo(1400)) * time.Millisecond
}
