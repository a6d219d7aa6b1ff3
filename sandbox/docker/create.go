package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/containerd/errdefs"

	"ship/sandbox"
	"ship/sandbox/folder"
)

// createTries bounds how often a name is found taken and its holder gone: then
// somebody removes it just now.
const (
	createTries = 20
	createPause = 100 * time.Millisecond
)

// Create returns the living box of spec.Key, or makes it. Whoever else makes it
// at the same time gets the same: the engine gives a name only once, and who
// comes second finds what the first has made, and starts it if need be. A higher
// generation is recorded on a box that lives; its expiry only ever moves away.
func (p *Provider) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Info, error) {
	if spec.Key == "" || spec.TTL <= 0 {
		return sandbox.Info{}, fmt.Errorf("making a box: key %q and ttl %s have to be set", spec.Key, spec.TTL)
	}
	can, err := p.check(ctx)
	if err != nil {
		return sandbox.Info{}, err
	}
	for range createTries {
		var s seen
		s, err = p.obtain(ctx, spec, can)
		if err == nil {
			return s.info(), nil
		}
		if !isGone(err) && !errors.Is(err, sandbox.ErrBusy) {
			return sandbox.Info{}, fmt.Errorf("making a box for %s: %w", spec.Key, err)
		}
		select {
		case <-ctx.Done():
			return sandbox.Info{}, fmt.Errorf("making a box for %s: %w", spec.Key, context.Cause(ctx))
		case <-time.After(createPause):
		}
	}
	return sandbox.Info{}, fmt.Errorf("making a box for %s: container %s comes and goes: %w: %v", spec.Key, p.name(spec.Key), sandbox.ErrBusy, err)
}

// obtain tries once. ErrGone and ErrBusy: what was there changes just now.
func (p *Provider) obtain(ctx context.Context, spec sandbox.Spec, can ability) (seen, error) {
	s, found, err := p.find(ctx, spec.Key)
	if err != nil {
		return s, err
	}
	if !found {
		if s, err = p.make(ctx, spec, can); err != nil {
			return s, err
		}
	}
	if s.record, err = p.renew(ctx, s.ID, spec); err != nil {
		return s, err
	}
	return p.bringUp(ctx, s)
}

// find returns the box of a key, and clears away one that died.
func (p *Provider) find(ctx context.Context, key string) (s seen, found bool, err error) {
	list, err := p.containers(ctx, sandbox.LabelSession+"="+key)
	if err != nil {
		return s, false, err
	}
	for _, c := range list {
		s, err := p.settle(ctx, c)
		if err == nil || !isGone(err) {
			return s, err == nil, err
		}
		if err := p.remove(ctx, s); err != nil {
			return s, false, err
		}
	}
	return s, false, nil
}

// renew brings a box up to what spec says.
func (p *Provider) renew(ctx context.Context, id string, spec sandbox.Spec) (record, error) {
	return p.change(ctx, id, func(r *record) bool {
		r.Generation = max(r.Generation, spec.Generation)
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		maps.Copy(r.Labels, spec.Labels)
		if until := time.Now().UTC().Add(spec.TTL); until.After(r.Expires) {
			r.Expires = until
		}
		return true
	})
}

// make makes a box that does not run yet. If it cannot, nothing is left of it.
func (p *Provider) make(ctx context.Context, spec sandbox.Spec, can ability) (seen, error) {
	now := time.Now().UTC()
	s := seen{record: record{
		ID: folder.NewID(spec.Key), Key: spec.Key, Generation: spec.Generation, Labels: spec.Labels,
		Created: now, Expires: now.Add(spec.TTL), Secret: rand.Text(),
	}}
	h := p.home(s.ID)
	err := h.make(s.record, can)
	if err == nil {
		s.container, err = p.place(ctx, s.record, can)
	}
	if err == nil {
		return s, nil
	}
	if left := h.bury(); left != nil {
		p.cfg.Logger.Warn("the folder of a box that was not made is left", "box", s.ID, "error", left)
	}
	return s, err
}

// place makes the container. Where the name is taken, ErrBusy. An engine that
// was asked and gave no answer may have made it all the same: then its folder is
// gone, and the next who sees the container removes it.
func (p *Provider) place(ctx context.Context, r record, can ability) (string, error) {
	made, err := p.engine.ContainerCreate(ctx, p.order(r, can))
	if errdefs.IsNotFound(err) {
		return "", p.noImage()
	}
	return made.ID, fault(ctx, "making the container", err)
}
