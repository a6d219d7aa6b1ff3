package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ship/sandbox"
	"ship/sandbox/folder"
)

// Pause ends the processes of a box and keeps its files. Processes that only
// stand still would keep their memory, which one machine is short of. A paused
// box takes nothing but its folder, and outlives a restart of the machine.
func (p *Provider) Pause(ctx context.Context, id string) error {
	if err := p.hold(ctx, id, func(r *record) error { return p.pause(ctx, r) }); err != nil {
		return fmt.Errorf("pausing box %s: %w", id, err)
	}
	return nil
}

// pause notes first what is meant: if we are killed before the processes have
// ended, the box is paused, and whoever wakes it ends them.
func (p *Provider) pause(ctx context.Context, r *record) error {
	r.Paused = true
	if err := p.home(r.ID).save(*r); err != nil {
		return err
	}
	return r.end(ctx)
}

// wake starts a guest in the folder of a paused box; one that runs is left alone.
// If it cannot, the box stays paused.
func (p *Provider) wake(ctx context.Context, r *record) error {
	if !r.Paused {
		return nil
	}
	if err := errors.Join(p.Check(ctx), p.roomFor(r.ID)); err != nil {
		return err
	}
	if err := r.end(ctx); err != nil {
		return err
	}
	// As at a start of a machine: nobody is left who knows the processes that are
	// described there.
	if err := folder.Remove(p.home(r.ID).run()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("emptying the folder of its processes: %w", err)
	}
	r.Paused = false
	err := p.launch(ctx, r)
	if err == nil {
		return nil
	}
	// Not ctx: it may be what made the attempt fail.
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(fmt.Errorf("waking it: %w", err), p.pause(back, r))
}

// roomFor: without isolation two guests would have one network.
func (p *Provider) roomFor(id string) error {
	if p.cfg.Isolation != None {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(p.cfg.Dir, "*-*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		other := filepath.Base(name)
		if !folder.IsID(other) || other == id {
			continue
		}
		if r, lives := p.home(other).living(); lives && !r.Paused {
			return fmt.Errorf("without isolation only one box can run, and %s does: %w", other, sandbox.ErrQuota)
		}
	}
	return nil
}

// end ends whatever runs in a box. Nothing runs: nil.
func (r *record) end(ctx context.Context) error {
	if err := r.Process.end(ctx); err != nil {
		return fmt.Errorf("ending its processes: %w", err)
	}
	if err := removeGroups(ctx, r.Cgroups); err != nil {
		return fmt.Errorf("removing its limits: %w", err)
	}
	return nil
}
