package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// story is what people do in one run, on all platforms at once. Who says what
// in which order is drawn from the seed; only how long things take is not.
type story struct {
	lab     *lab
	threads []*thread
	wg      sync.WaitGroup
	done    chan struct{}
}

// thread is one conversation with ship.
type thread struct {
	lab  *lab
	name string
	rng  *rand.Rand
	// talk is the place where it is held.
	talk talk

	mu     sync.Mutex
	asked  []ask // guarded by mu
	posted int   // guarded by mu: how often a delivery was sent
}

// ask is something that a person said, which ship has accepted.
type ask struct {
	manner manner
	// word is in its text, and in no other.
	word string
}

type manner string

const (
	work   manner = "work"   // adds one line to the branch
	wonder manner = "wonder" // an answer, and no line
	slow   manner = "slow"   // goes on until it is stopped
	status manner = "status" // is answered at once
	halt   manner = "stop"
	retry  manner = "retry" // what was stopped, anew
)

// talk is how people speak on a platform.
type talk interface {
	// says has somebody say something. What it returns tells one ship of it,
	// once each, and whether that accepted it.
	says(text string) []posting
	stop() []posting
	// ended: the last thing there is ship's last word.
	ended() bool
	// check demands what holds when all is quiet, after so many answers to
	// what needs no turn.
	check(th *thread)
}

type posting func(*gateway) bool

// newStory draws one.
func newStory(l *lab, seed int64) *story {
	s := &story{lab: l, done: make(chan struct{})}
	for i, open := range []func(*lab) talk{newIssueTalk, newLinearTalk, newSlackTalk, newIssueTalk, newLinearTalk, newSlackTalk} {
		talk := open(l)
		s.threads = append(s.threads, &thread{
			lab: l, talk: talk, name: fmt.Sprintf("t%d", i+1), rng: rand.New(rand.NewPCG(uint64(seed), uint64(i)+1)),
		})
	}
	return s
}

// begin lets everybody speak.
func (s *story) begin() {
	for _, th := range s.threads {
		s.wg.Go(th.play)
	}
	go func() { s.wg.Wait(); close(s.done) }()
}

// over: everything that was said was accepted.
func (s *story) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *story) String() string {
	var b strings.Builder
	for _, th := range s.threads {
		fmt.Fprintf(&b, "thread %s: %v\n", th.name, th.said())
	}
	return b.String()
}

// asks counts what was said of a manner, over all threads.
func (s *story) asks(which ...manner) (n int) {
	for _, th := range s.threads {
		n += th.count(which...)
	}
	return n
}

func (th *thread) said() []ask {
	th.mu.Lock()
	defer th.mu.Unlock()
	return append([]ask(nil), th.asked...)
}

func (th *thread) count(which ...manner) (n int) {
	for _, a := range th.said() {
		for _, w := range which {
			if a.manner == w {
				n++
			}
		}
	}
	return n
}

// stoppedAfter: somebody said stop later than that.
func (th *thread) stoppedAfter(a ask) bool {
	all := th.said()
	return slices.ContainsFunc(all[slices.Index(all, a):], func(b ask) bool { return b.manner == halt })
}

// retriedAfter is how often somebody said retry later than that.
func (th *thread) retriedAfter(a ask) (n int) {
	all := th.said()
	for _, b := range all[slices.Index(all, a):] {
		if b.manner == retry {
			n++
		}
	}
	return n
}

func (th *thread) spoken() bool { return len(th.said()) > 0 }
func (th *thread) ended() bool  { return th.talk.ended() }

// play is one person's part: three to five things, with pauses in which the agent
// may be done or not. The second is always a question about the status.
func (th *thread) play() {
	th.pause(1500)
	for i := range 3 + th.rng.IntN(3) {
		switch n := th.rng.IntN(10); {
		case i == 1:
			th.say(status)
		case n < 5 || i == 0:
			th.say(work)
		case n < 6:
			th.say(wonder)
		case n < 7:
			th.say(status)
		default:
			th.say(slow)
			th.pause(4000)
			th.say(halt)
			if n == 9 {
				th.again()
			}
		}
		th.pause(6000)
	}
	if th.rng.IntN(4) == 0 {
		th.burst()
	}
}

// again has what was stopped taken up, and stopped once more.
func (th *thread) again() {
	th.pause(3000)
	th.say(retry)
	th.pause(4000)
	th.say(halt)
}

// burst is a dozen people who want to know the same at the same moment.
func (th *thread) burst() {
	var all sync.WaitGroup
	for range 12 {
		words, rng := th.talk.says("status"), th.fork()
		all.Go(func() { th.deliver(words, rng); th.note(ask{manner: status}) })
	}
	all.Wait()
}

// fork is another source of chance, that the seed decides as well.
func (th *thread) fork() *rand.Rand { return rand.New(rand.NewPCG(th.rng.Uint64(), th.rng.Uint64())) }

// pause is up to so many milliseconds.
func (th *thread) pause(most int) {
	time.Sleep(time.Duration(th.rng.IntN(most)) * time.Millisecond)
}

// say has the person say something, and delivers that until it is accepted.
func (th *thread) say(which manner) {
	a := ask{which, fmt.Sprintf("%s-%d", th.name, len(th.said())+1)}
	th.deliver(th.words(a), th.rng)
	th.note(a)
}

// note keeps what was accepted.
func (th *thread) note(a ask) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.asked = append(th.asked, a)
}

// words are what is said, as deliveries.
func (th *thread) words(a ask) []posting {
	switch a.manner {
	case work:
		pace := []string{"", "", " PLAN", " TAKING 3s", " TAKING 8s"}[th.rng.IntN(5)]
		return th.talk.says("turn " + a.word + pace)
	case wonder:
		return th.talk.says("WHY " + a.word)
	case slow:
		return th.talk.says("SLOWLY " + a.word)
	case status, retry:
		return th.talk.says(string(a.manner))
	default:
		return th.talk.stop()
	}
}

// deliver is a patient platform: in any order, to whichever ship answers, again
// when it is not accepted, and now and then twice or to both at once.
func (th *thread) deliver(all []posting, rng *rand.Rand) {
	rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	for _, p := range all {
		ships := th.lab.ships
		if rng.IntN(2) == 0 {
			ships = []*gateway{ships[1], ships[0]}
		}
		twins, again := rng.IntN(5) == 0, rng.IntN(4) == 0
		if twins {
			var both sync.WaitGroup
			for _, g := range ships {
				both.Go(func() { th.post(p, g) })
			}
			both.Wait()
		}
		for n := 0; !th.post(p, ships[n%len(ships)]); n++ {
			time.Sleep(300 * time.Millisecond)
		}
		if again {
			th.post(p, ships[1])
		}
	}
}

func (th *thread) post(p posting, g *gateway) bool {
	th.mu.Lock()
	th.posted++
	th.mu.Unlock()
	return p(g)
}
