// Package chaos makes boxes fail, so that it can be seen that nothing is lost by
// it. It stands before another provider and does to its boxes what networks,
// machines and the makers of boxes do now and then.
//
// What happens to a session is drawn when it is first heard of, from the seed and
// the session's key: how often each fault strikes, and at which of its occasions.
// So a seed tells the same story again as far as a session asks for the same
// things in the same order. A session meets only a few faults, as one that fails
// for ever is an outage, which is something else.
//
// Every error it returns is one that providers return as well.
package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ship/sandbox"
)

// Fault is a kind of failure.
type Fault string

// The kinds.
const (
	// Killed: the box ends just after a command was started in it.
	Killed Fault = "killed"
	// Stale: a handle on a living box stops working.
	Stale Fault = "stale"
	// Hidden: the provider says of a living box that there is none.
	Hidden Fault = "hidden"
	// Misstated: the provider says that a box runs which is paused, or the other
	// way round.
	Misstated Fault = "misstated"
	// Unanswered: the provider did what it was asked, and the answer was lost.
	Unanswered Fault = "unanswered"
	// Slow: a call, or what is read from a connection, takes long.
	Slow Fault = "slow"
	// Cut: a part of a file comes, or nothing; a connection ends in the middle.
	Cut Fault = "cut"
	// Older: a paused box wakes without what was written last.
	Older Fault = "older"
)

// Kinds are all faults there are.
func Kinds() []Fault {
	return []Fault{Killed, Stale, Hidden, Misstated, Unanswered, Slow, Cut, Older}
}

// Config of a Provider.
type Config struct {
	// Boxes are those that are made to fail.
	Boxes sandbox.Provider
	// Seed of everything that is drawn.
	Seed uint64
	// OnFault is called with every fault, as it happens; it may be called
	// concurrently. Nil: nobody is told.
	OnFault func(key string, f Fault)
	Logger  *slog.Logger
}

// Provider is a sandbox.Provider whose boxes fail. It remembers every session
// that it has heard of for as long as it lives.
type Provider struct {
	cfg Config

	mu    sync.Mutex
	fates map[string]*fate
	// keys are the sessions of boxes.
	keys map[string]string
	// entered is when a box was last attached to.
	entered map[string]time.Time
}

var _ sandbox.Provider = (*Provider)(nil)

// New returns a provider before cfg.Boxes.
func New(cfg Config) *Provider {
	return &Provider{cfg: cfg, fates: map[string]*fate{}, keys: map[string]string{}, entered: map[string]time.Time{}}
}

// Create makes the box, or finds it; see sandbox.Provider.
func (p *Provider) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Info, error) {
	info, err := p.cfg.Boxes.Create(ctx, spec)
	if err != nil {
		return info, err
	}
	p.learn(info)
	return info, p.answer(info.ID, "making a box")
}

// Attach returns a handle that may stop working; see sandbox.Provider.
func (p *Provider) Attach(ctx context.Context, id string, ttl time.Duration) (sandbox.Box, error) {
	before, err := p.info(ctx, id)
	if err != nil {
		return p.cfg.Boxes.Attach(ctx, id, ttl) // it knows best what to say
	}
	inner, err := p.cfg.Boxes.Attach(ctx, id, ttl)
	if err != nil {
		return nil, err
	}
	if before.State == sandbox.Paused {
		if err := p.dropNewest(ctx, inner, id); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	p.entered[id] = time.Now()
	p.mu.Unlock()
	b := &box{inner: inner, provider: p, id: id}
	if fate := p.fate(id); p.strikes(id, Stale) {
		b.callsLeft.Store(int64(fate.upTo(20)))
		b.expires = true
	}
	return b, nil
}

// Info may deny or misjudge a box; see sandbox.Provider.
func (p *Provider) Info(ctx context.Context, id string) (sandbox.Info, error) {
	info, err := p.info(ctx, id)
	switch {
	case err != nil:
		return info, err
	case p.strikes(id, Hidden):
		return sandbox.Info{}, fmt.Errorf("looking at box %s: %w", id, sandbox.ErrGone)
	}
	return p.misstate(info), nil
}

// List may leave a box out or misjudge it; see sandbox.Provider.
func (p *Provider) List(ctx context.Context, labels map[string]string) ([]sandbox.Info, error) {
	all, err := p.cfg.Boxes.List(ctx, labels)
	if err != nil {
		return nil, err
	}
	var seen []sandbox.Info
	for _, info := range all {
		p.learn(info)
		if !p.strikes(info.ID, Hidden) {
			seen = append(seen, p.misstate(info))
		}
	}
	return seen, nil
}

// Extend may be done without saying so; see sandbox.Provider.
func (p *Provider) Extend(ctx context.Context, id string, until time.Time) error {
	if err := p.cfg.Boxes.Extend(ctx, id, until); err != nil {
		return err
	}
	return p.answer(id, "extending a box")
}

// Pause may be done without saying so; see sandbox.Provider.
func (p *Provider) Pause(ctx context.Context, id string) error {
	if err := p.cfg.Boxes.Pause(ctx, id); err != nil {
		return err
	}
	return p.answer(id, "pausing a box")
}

// Destroy may be done without saying so; see sandbox.Provider.
func (p *Provider) Destroy(ctx context.Context, id string) error {
	if err := p.cfg.Boxes.Destroy(ctx, id); err != nil {
		return err
	}
	return p.answer(id, "destroying a box")
}

// answer is that to something that was done. It may get lost.
func (p *Provider) answer(id, doing string) error {
	if p.strikes(id, Unanswered) {
		return fmt.Errorf("%s: the answer was lost: %w", doing, sandbox.ErrTransient)
	}
	return nil
}

// misstate may turn what is said of a box into the opposite.
func (p *Provider) misstate(info sandbox.Info) sandbox.Info {
	if !p.strikes(info.ID, Misstated) {
		return info
	}
	if info.State == sandbox.Paused {
		info.State = sandbox.Running
	} else {
		info.State = sandbox.Paused
	}
	return info
}

// info asks the provider behind this one, and learns whose box it is.
func (p *Provider) info(ctx context.Context, id string) (sandbox.Info, error) {
	info, err := p.cfg.Boxes.Info(ctx, id)
	if err == nil {
		p.learn(info)
	}
	return info, err
}

func (p *Provider) learn(info sandbox.Info) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[info.ID] = info.Key
	if p.fates[info.Key] == nil {
		p.fates[info.Key] = newFate(p.cfg.Seed, info.Key)
	}
}

// fate is that of a box's session; nil: nobody has heard of the box.
func (p *Provider) fate(id string) *fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fates[p.keys[id]]
}

// strikes counts one occasion for a fault, and tells whether it is taken.
func (p *Provider) strikes(id string, f Fault) bool {
	if !p.fate(id).strikes(f) {
		return false
	}
	p.tell(id, f)
	return true
}

func (p *Provider) tell(id string, f Fault) {
	p.mu.Lock()
	key := p.keys[id]
	p.mu.Unlock()
	p.cfg.Logger.Info("a box is made to fail", "session", key, "box", id, "fault", string(f))
	if p.cfg.OnFault != nil {
		p.cfg.OnFault(key, f)
	}
}
