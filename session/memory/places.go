package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"ship/session"
)

// Places are session.Places for one process. The zero Places are ready.
type Places struct {
	mu   sync.Mutex
	held map[session.ID]holding // guarded by mu
	// line are those who wait, by their numbers, which only rise.
	line    []*ticket
	tickets map[session.ID]*ticket
}

var _ session.Places = (*Places)(nil)

// holding is a place that is taken.
type holding struct {
	stake session.Stake
	until time.Time
}

// ticket is a place in the line.
type ticket struct {
	number int
	stake  session.Stake
	// until is when somebody has to ask again, or is passed over.
	until time.Time
}

// forgotten is how many times as long as they may be silent people keep their
// place in the line.
const forgotten = 10

// Take implements session.Places.
func (p *Places) Take(ctx context.Context, s session.Stake) (session.Standing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return session.Standing{}, err
	}
	freed := p.expire()
	if h, again := p.held[s.ID]; again || s.AtWork {
		if !again || h.stake.Epoch <= s.Epoch {
			freed = freed || again && (h.stake.Worker != s.Worker || h.stake.Person != s.Person)
			p.give(s)
		}
		return session.Standing{Next: p.serve(freed)}, nil
	}
	t := p.join(s)
	next := p.serve(freed)
	full := p.full(t.stake)
	if _, given := p.held[s.ID]; given || full == "" {
		if !given {
			p.give(t.stake)
		}
		return session.Standing{Next: slices.DeleteFunc(next, func(id session.ID) bool { return id == s.ID })}, nil
	}
	return session.Standing{Line: p.find(t) + 1, Full: full, Next: next}, nil
}

// Release implements session.Places.
func (p *Places) Release(ctx context.Context, id session.ID, epoch int64) ([]session.ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	freed := p.expire()
	if h, ok := p.held[id]; ok && h.stake.Epoch <= epoch {
		delete(p.held, id)
		freed = true
	}
	if t := p.tickets[id]; t != nil && t.stake.Epoch <= epoch {
		p.leave(t)
	}
	return p.serve(freed), nil
}

// The caller of these holds mu.

// expire tells whether a place became free because its time was over.
func (p *Places) expire() (freed bool) {
	now := time.Now()
	for id, h := range p.held {
		if !h.until.After(now) {
			delete(p.held, id)
			freed = true
		}
	}
	return freed
}

func (p *Places) give(s session.Stake) {
	if p.held == nil {
		p.held = map[session.ID]holding{}
	}
	p.held[s.ID] = holding{s, time.Now().Add(s.Keep)}
	if t := p.tickets[s.ID]; t != nil {
		p.leave(t)
	}
}

// join goes to the end of the line, or stays where the session was.
func (p *Places) join(s session.Stake) *ticket {
	t := p.tickets[s.ID]
	if t == nil {
		t = &ticket{number: 1}
		if n := len(p.line); n > 0 {
			t.number = p.line[n-1].number + 1
		}
		if p.tickets == nil {
			p.tickets = map[session.ID]*ticket{}
		}
		p.tickets[s.ID], p.line = t, append(p.line, t)
	}
	if t.stake.Epoch <= s.Epoch {
		t.stake, t.until = s, time.Now().Add(s.Wait)
	}
	return t
}

func (p *Places) find(t *ticket) int {
	i, _ := slices.BinarySearchFunc(p.line, t.number, func(t *ticket, number int) int { return t.number - number })
	return i
}

func (p *Places) leave(t *ticket) {
	i := p.find(t)
	p.line = slices.Delete(p.line, i, i+1)
	delete(p.tickets, t.stake.ID)
}

// serve gives what became free to the first who may have it. While nothing
// does, nobody in the line may have anything.
func (p *Places) serve(freed bool) (next []session.ID) {
	if !freed {
		return nil
	}
	now := time.Now()
	for _, t := range slices.Clone(p.line) {
		switch {
		case t.until.Add((forgotten - 1) * t.stake.Wait).Before(now):
			p.leave(t)
		case t.until.After(now) && p.full(t.stake) == "":
			p.give(t.stake)
			next = append(next, t.stake.ID)
		}
	}
	return next
}

// full is the limit that has to be waited for; empty: none.
func (p *Places) full(s session.Stake) session.Full {
	var worker, person int
	for _, h := range p.held {
		if h.stake.Worker == s.Worker {
			worker++
		}
		if h.stake.Person == s.Person {
			person++
		}
	}
	reached := func(n, most int) bool { return most > 0 && n >= most }
	switch {
	case reached(person, s.Most.Person):
		return session.FullPerson
	case reached(len(p.held), s.Most.All):
		return session.FullAll
	case reached(worker, s.Most.Worker):
		return session.FullWorker
	}
	return ""
}
