package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"ship/bot/standin"
	"ship/integrations/github/githubtest"
	"ship/integrations/slack/slacktest"
)

// saboteur does to a world what the seed says, while people speak there. One
// goroutine does all of it, and undoes it when its time is over.
type saboteur struct {
	*lab
	rng  *rand.Rand
	plan []move
	// at once is what is to be done now, by who waits for it; none is any more
	// when over is closed.
	atOnce chan func()
	over   chan struct{}
}

// move is something that is done, or undone, at a time of the run.
type move struct {
	at time.Duration
	do func()
}

// fault is a way to do harm. It returns how it is undone, and when.
type fault struct {
	name string
	do   func(*saboteur) (undo func(), after time.Duration)
}

// labFaults are all that there are.
func labFaults() []fault {
	return []fault{
		{"kill", (*saboteur).kill},
		{"kill at a point", (*saboteur).killAtPoint},
		{"freeze", (*saboteur).freeze},
		{"redis killed", (*saboteur).killRedis},
		{"redis full", (*saboteur).fillRedis},
		{"redis read-only", (*saboteur).demoteRedis},
		{"network cut", (*saboteur).cut},
		{"network slow", (*saboteur).slow},
		{"network half-open", (*saboteur).halfOpen},
		{"platform fails", (*saboteur).fail},
		{"platform away", (*saboteur).away},
	}
}

// newSaboteur draws three to six faults within the first seconds.
func newSaboteur(l *lab, seed int64) *saboteur {
	s := &saboteur{
		lab: l, rng: rand.New(rand.NewPCG(uint64(seed), 0)), atOnce: make(chan func()), over: make(chan struct{}),
	}
	all := labFaults()
	for range 3 + s.rng.IntN(4) {
		f := all[s.rng.IntN(len(all))]
		s.plan = append(s.plan, move{s.between(500, 12_000), func() { s.strike(f) }})
	}
	s.setClocks()
	s.setRelease()
	l.ambushes = newAmbushes(s)
	for _, a := range l.ambushes {
		s.plan = append(s.plan, move{30 * time.Second, a.lift})
	}
	return s
}

// setClocks has one of the ships live ten minutes before or after the other, in
// every second run of those that are to have this.
func (s *saboteur) setClocks() {
	g, ahead, wrong := s.one(), s.rng.IntN(2) == 0, s.rng.IntN(2) == 0
	if !wrong || os.Getenv("SHIP_TEST_LAB_CLOCKS") == "" {
		return
	}
	offset := map[bool]string{true: "600", false: "-600"}[ahead]
	s.tally.add("clock wrong", 1)
	s.journal("the clock of %s is off by %s s", g.name, offset)
	g.program, g.env = skewedProgram(s.t), append(g.env, "SHIP_TEST_CLOCK="+offset)
}

// setRelease has one of the ships be of another release, if there is one, as
// during a rolling deploy. Each of them has to read what the other wrote.
func (s *saboteur) setRelease() {
	g, other := s.one(), os.Getenv("SHIP_TEST_LAB_PREVIOUS")
	if other == "" || g.program != "" {
		return
	}
	s.tally.add("another release", 1)
	s.journal("%s is %s", g.name, other)
	g.program = other
}

// strike does a fault now, and plans its undoing.
func (s *saboteur) strike(f fault) {
	s.tally.add(f.name, 1)
	s.journal("%s", f.name)
	undo, after := f.do(s)
	if undo != nil {
		s.plan = append(s.plan, move{time.Since(s.began) + after, undo})
	}
}

// run does all that is planned, in order.
func (s *saboteur) run() {
	for len(s.plan) > 0 {
		i := s.next()
		select {
		case do := <-s.atOnce:
			do()
		case <-time.After(time.Until(s.began.Add(s.plan[i].at))):
			do := s.plan[i].do
			s.plan = slices.Delete(s.plan, i, i+1)
			do()
		}
	}
	close(s.over)
}

// next is where in the plan that is which comes first.
func (s *saboteur) next() (first int) {
	for i, m := range s.plan {
		if m.at < s.plan[first].at {
			first = i
		}
	}
	return first
}

// interrupt has something done at once, and returns when it is.
func (s *saboteur) interrupt(do func()) {
	done := make(chan struct{})
	select {
	case s.atOnce <- func() { do(); close(done) }:
		<-done
	case <-s.over:
	}
}

func (s *saboteur) between(least, most int) time.Duration {
	return time.Duration(least+s.rng.IntN(most-least)) * time.Millisecond
}

func (s *saboteur) one() *gateway { return s.ships[s.rng.IntN(len(s.ships))] }

// kill ends a ship as a crash does; another begins where it was.
func (s *saboteur) kill() (undo func(), after time.Duration) {
	g := s.one()
	s.journal("%s dies", g.name)
	g.die()
	return func() { g.up() }, s.between(1, 3000)
}

// killAtPoint has a ship begin anew, and die the nth time it comes by a point.
func (s *saboteur) killAtPoint() (undo func(), after time.Duration) {
	g, points := s.one(), labPoints()
	at := fmt.Sprintf("%s:%d", points[s.rng.IntN(len(points))], 1+s.rng.IntN(3))
	s.journal("%s is to die at %s", g.name, at)
	g.die()
	g.up("SHIP_TEST_KILL_ON=" + at)
	return func() {
		if g.alive() { // it did not come by, and must not later
			s.tally.add("kill at a point", -1)
			s.tally.add("kill", 1)
			g.die()
		}
		g.up()
	}, s.between(6000, 9000)
}

// labPoints are where a crash is most interesting.
func labPoints() (all []string) {
	all = append(all, "append", "claim", "commit", "renew")
	for _, kind := range []string{"admit", "acknowledge", "say", "begin", "answer", "report", "prepare", "run", "publish", "open", "check", "tend"} {
		all = append(all, "effect."+kind)
	}
	for i, name := range all {
		all[i] = name + ".before"
		all = append(all, name+".after")
	}
	return all
}

// freeze has a ship stand still, for less than a lease or for more.
func (s *saboteur) freeze() (undo func(), after time.Duration) {
	g := s.one()
	if g.frozen || !g.alive() {
		return nil, 0
	}
	s.journal("%s freezes", g.name)
	g.frozen = true
	g.open.Store(false)
	g.freeze()
	after = s.between(1000, 5000)
	if s.rng.IntN(2) == 0 {
		after += 14 * time.Second
	}
	return g.thawed, after
}

func (s *saboteur) killRedis() (undo func(), after time.Duration) {
	if s.redisDown {
		return nil, 0
	}
	s.redisDown = true
	s.redis.Kill()
	after = s.between(1, 3000)
	if s.rng.IntN(4) == 0 {
		after += 10 * time.Second // the owners let go
	}
	return s.redisUp, after
}

func (s *saboteur) fillRedis() (undo func(), after time.Duration) {
	if s.redisDown {
		return nil, 0
	}
	s.redisSays("CONFIG", "SET", "maxmemory", "1")
	return s.redisUp, s.between(500, 5000)
}

// demoteRedis makes the server a replica of one that is not there.
func (s *saboteur) demoteRedis() (undo func(), after time.Duration) {
	if s.redisDown {
		return nil, 0
	}
	s.redisSays("REPLICAOF", "127.0.0.1", "1")
	return s.redisUp, s.between(500, 5000)
}

func (s *saboteur) cut() (undo func(), after time.Duration) {
	g := s.one()
	g.net.cut()
	after = s.between(500, 5000)
	if s.rng.IntN(4) == 0 {
		after += 12 * time.Second
	}
	return g.net.mend, after
}

func (s *saboteur) slow() (undo func(), after time.Duration) {
	g := s.one()
	g.net.spoil(s.stream(), "latency", fmt.Sprintf(`"latency":%d,"jitter":%d`, 100+s.rng.IntN(1200), s.rng.IntN(500)))
	return g.net.mend, s.between(2000, 8000)
}

func (s *saboteur) halfOpen() (undo func(), after time.Duration) {
	g := s.one()
	g.net.spoil(s.stream(), "timeout", `"timeout":0`)
	return g.net.mend, s.between(1000, 9000)
}

func (s *saboteur) stream() string { return []string{"upstream", "downstream"}[s.rng.IntN(2)] }

// platforms take faults.
func (s *saboteur) platforms() []interface{ Inject(standin.Fault) } {
	return []interface{ Inject(standin.Fault) }{s.host, s.linear, s.slack}
}

// fail has a platform do a few things wrong, anywhere.
func (s *saboteur) fail() (undo func(), after time.Duration) {
	at := s.rng.IntN(3)
	kinds := []standin.Fault{
		{Lost: true}, {Lost: true}, {Status: http.StatusBadGateway, Body: "<html>Bad Gateway</html>"}, {Hang: true}, s.limited(at),
	}
	for range 2 + s.rng.IntN(4) {
		f := kinds[s.rng.IntN(len(kinds))]
		f.Skip = s.rng.IntN(25)
		s.platforms()[at].Inject(f)
	}
	return nil, 0
}

// limited is a platform's answer to who asks too often.
func (s *saboteur) limited(platform int) standin.Fault {
	switch platform {
	case 0:
		return githubtest.SecondaryLimit("", time.Second)
	case 1:
		return standin.Fault{Status: http.StatusServiceUnavailable}
	default:
		return slacktest.Limited("", time.Second)
	}
}

// away has a platform answer nothing for a while.
func (s *saboteur) away() (undo func(), after time.Duration) {
	at := s.rng.IntN(3)
	s.platforms()[at].Inject(standin.Fault{Status: http.StatusServiceUnavailable, Times: -1})
	return []func(){s.host.ClearFaults, s.linear.ClearFaults, s.slack.ClearFaults}[at], s.between(1000, 8000)
}

// journal notes what was done, for who has to find out why.
func (s *saboteur) journal(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf("%s %s", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, args...)))
}

func (l *lab) history() string { return strings.Join(l.events, "\n") }
