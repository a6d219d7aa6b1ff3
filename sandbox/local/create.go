package local

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"ship/sandbox"
	"ship/sandbox/folder"
)

// Create returns the living box of spec.Key, or makes it. A higher generation
// is recorded on a box that lives; its expiry only ever moves away.
func (p *Provider) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Info, error) {
	if spec.Key == "" || spec.TTL <= 0 {
		return sandbox.Info{}, fmt.Errorf("making a box: key %q and ttl %s have to be set", spec.Key, spec.TTL)
	}
	if err := p.Check(ctx); err != nil {
		return sandbox.Info{}, err
	}
	id := folder.NewID(spec.Key)
	unlock, err := p.lock(ctx, id)
	if err != nil {
		return sandbox.Info{}, fmt.Errorf("making a box: %w", err)
	}
	defer unlock()
	r, found, err := p.find(ctx, spec.Key)
	if err == nil && found {
		err = p.renew(&r, spec)
	} else if err == nil {
		r, err = p.make(ctx, id, spec)
	}
	if err != nil {
		return sandbox.Info{}, fmt.Errorf("making a box for %s: %w", spec.Key, err)
	}
	return r.info(), nil
}

// find returns the living box of a key, and clears away those that died.
func (p *Provider) find(ctx context.Context, key string) (r record, found bool, err error) {
	pattern := folder.HashKey(key) + "-*"
	if p.cfg.Isolation == None {
		pattern = "*-*"
	}
	names, err := filepath.Glob(filepath.Join(p.cfg.Dir, pattern))
	if err != nil {
		return record{}, false, err
	}
	for _, name := range names {
		id := filepath.Base(name)
		if !folder.IsID(id) {
			continue
		}
		r, lives := p.home(id).living()
		switch {
		case lives && r.Key == key:
			return r, true, nil
		case lives && p.cfg.Isolation == None && !r.Paused:
			return record{}, false, fmt.Errorf("without isolation only one box can run, and %s does: %w", id, sandbox.ErrQuota)
		case lives:
			continue // It is paused, or its key only has the same hash.
		}
		if err := p.clear(ctx, id); err != nil {
			return record{}, false, fmt.Errorf("clearing away box %s: %w", id, err)
		}
	}
	return record{}, false, nil
}

// renew brings a living box up to what spec says.
func (p *Provider) renew(r *record, spec sandbox.Spec) error {
	r.Generation = max(r.Generation, spec.Generation)
	labels := maps.Clone(r.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, spec.Labels)
	r.Labels = labels
	if err := p.extend(r, time.Now().Add(spec.TTL)); err != nil {
		return err
	}
	return p.home(r.ID).save(*r)
}

// make makes a box. If it cannot, nothing is left of it.
func (p *Provider) make(ctx context.Context, id string, spec sandbox.Spec) (record, error) {
	now := time.Now().UTC()
	r := record{
		ID:         id,
		Key:        spec.Key,
		Generation: spec.Generation,
		Labels:     spec.Labels,
		Created:    now,
		Expires:    now.Add(spec.TTL),
	}
	err := p.launch(ctx, &r)
	if err == nil {
		return r, nil
	}
	// Not ctx: it may be what made the attempt fail.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if left := p.clear(clean, id); left != nil {
		p.cfg.Logger.Warn("half a box is left", "box", id, "error", left)
	}
	return record{}, err
}

// tail returns the end of what bubblewrap and the guest complained about.
func (h home) tail() string {
	const most = 2 << 10
	text, err := os.ReadFile(h.log())
	if err != nil || len(text) == 0 {
		return "it said nothing"
	}
	return string(text[max(0, len(text)-most):])
}
