package e2b

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"ship/sandbox"
)

// Create returns the living box of spec.Key, or makes it.
//
// E2B lets many boxes have the same labels, and a create whose answer was lost
// leaves one that nobody knows. So there is a record, of which only one gateway
// can write each version: it names the one box of the key, and every other is
// destroyed. Without a record, the box of the newest generation is the one.
func (p *Provider) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Info, error) {
	if spec.Key == "" || spec.TTL <= 0 {
		return sandbox.Info{}, fmt.Errorf("making a box: key %q and ttl %s have to be set", spec.Key, spec.TTL)
	}
	for range 5 {
		info, settled, err := p.createOnce(ctx, spec)
		if err != nil {
			return sandbox.Info{}, fmt.Errorf("making a box for %s: %w", spec.Key, err)
		}
		if settled {
			return info, nil
		}
	}
	return sandbox.Info{}, fmt.Errorf("making a box for %s: %w: %w", spec.Key, sandbox.ErrBusy, errContended)
}

// createOnce is not settled when another gateway was faster.
func (p *Provider) createOnce(ctx context.Context, spec sandbox.Spec) (sandbox.Info, bool, error) {
	r, version, err := p.records.load(ctx, spec.Key)
	if err != nil {
		return sandbox.Info{}, false, err
	}
	all, err := p.list(ctx, map[string]string{sandbox.LabelSession: spec.Key})
	if err != nil {
		return sandbox.Info{}, false, err
	}
	chosen, found, err := p.choose(ctx, all, r)
	if err != nil {
		return sandbox.Info{}, false, err
	}
	if !found {
		if chosen, err = p.make(ctx, spec); err != nil {
			return sandbox.Info{}, false, err
		}
	}
	r = chosen.record(r)
	r.Generation = max(r.Generation, spec.Generation)
	if swapped, err := p.records.swap(ctx, spec.Key, version, r); err != nil || !swapped {
		return sandbox.Info{}, false, err
	}
	if err := p.destroyOthers(ctx, all, chosen.ID); err != nil {
		return sandbox.Info{}, false, err
	}
	chosen, err = p.renew(ctx, chosen, spec.TTL, found)
	return chosen.info(r), true, err
}

// choose returns the one box of a key: that of the record if it lives, else the
// newest generation's, the oldest of several.
func (p *Provider) choose(ctx context.Context, all []machine, r record) (best machine, found bool, err error) {
	for _, m := range all {
		if m.ID == r.Box {
			return m, true, nil
		}
		if !found || m.generation() > best.generation() {
			best, found = m, true
		}
	}
	if checkID(r.Box) != nil {
		return best, found, nil
	}
	// A list may be older than the record.
	m, err := p.api.get(ctx, r.Box)
	if errors.Is(err, sandbox.ErrGone) {
		return best, found, nil
	}
	return m, true, err
}

// record is the one for this box: the one that was, if it was of this box.
func (m machine) record(old record) record {
	if old.Box == m.ID {
		return old
	}
	return record{Box: m.ID, Generation: m.generation(), Access: m.access}
}

func (p *Provider) destroyOthers(ctx context.Context, all []machine, keep string) error {
	for _, m := range all {
		if m.ID == keep {
			continue
		}
		p.cfg.Logger.Info("destroying a second box of one session", "box", m.ID, "kept", keep)
		if err := p.api.destroy(ctx, m.ID); err != nil {
			return fmt.Errorf("destroying the second box %s: %w", m.ID, err)
		}
	}
	return nil
}

// make asks for a box. When the answer is lost, it looks whether there is one
// now; if it cannot be seen yet, the next Create finds it by its labels.
func (p *Provider) make(ctx context.Context, spec sandbox.Spec) (machine, error) {
	o := p.order(spec)
	before := time.Now()
	m, err := p.api.create(ctx, o)
	if err != nil && ctx.Err() == nil && !isFault(err) {
		all, look := p.list(ctx, map[string]string{sandbox.LabelSession: spec.Key})
		if look != nil || len(all) == 0 {
			return machine{}, err
		}
		return all[len(all)-1], nil
	}
	if err == nil {
		err = checkID(m.ID)
	}
	if err != nil {
		return machine{}, err
	}
	m.State, m.Metadata, m.Started, m.Ends = sandbox.Running, o.Metadata, before, before.Add(spec.TTL)
	return m, nil
}

func (p *Provider) order(spec sandbox.Spec) order {
	labels := map[string]string{}
	maps.Copy(labels, spec.Labels)
	labels[sandbox.LabelSession] = spec.Key
	labels[sandbox.LabelGeneration] = strconv.FormatInt(spec.Generation, 10)
	labels[labelGateway] = p.gateway
	return order{
		Template: p.cfg.Template, Timeout: seconds(min(spec.TTL, p.cfg.MaxLife)), Secure: true, Metadata: labels,
		// What is allowed by name counts only where all the rest is denied.
		Network: network{AllowOut: p.allow, DenyOut: []string{"0.0.0.0/0"}},
	}
}

// renew lets the time of a box that was found start anew. One that is paused
// stays so until somebody attaches.
func (p *Provider) renew(ctx context.Context, m machine, ttl time.Duration, found bool) (machine, error) {
	if !found {
		return m, nil
	}
	if err := p.extend(ctx, m, time.Now().Add(ttl)); err != nil {
		return machine{}, fmt.Errorf("extending it: %w", err)
	}
	return p.api.get(ctx, m.ID)
}
