package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"ship/sandbox"
	"ship/sandbox/folder"
)

// seen is a box as the engine and its folder have it.
type seen struct {
	record
	container string
	state     container.ContainerState
}

// info is what a caller may know. A box that is just being made or woken counts
// as running.
func (s seen) info() sandbox.Info {
	if s.asleep() {
		return s.record.info(sandbox.Paused)
	}
	return s.record.info(sandbox.Running)
}

// asleep: by our doing, or because a person has paused the container.
func (s seen) asleep() bool {
	return s.state == container.StateExited && s.Paused || s.state == container.StatePaused
}

// dead: its guest has ended, and not because we asked it to. Either its time was
// over, or something ended it, or the machine has started anew.
func (s seen) dead() bool {
	switch s.state {
	case container.StateExited:
		return !s.Paused
	case container.StateDead, container.StateRemoving:
		return true
	}
	return false
}

// containers returns ours that carry all these labels, each written name=value,
// whether they run or not.
func (p *Provider) containers(ctx context.Context, labels ...string) ([]container.Summary, error) {
	filters := client.Filters{}.Add("label", labelGateway+"="+p.gateway).Add("label", labels...)
	found, err := p.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, fault(ctx, "listing containers", err)
	}
	return found.Items, nil
}

// look returns a box that lives, asleep or not; else ErrGone.
func (p *Provider) look(ctx context.Context, id string) (seen, error) {
	s, err := p.observe(ctx, id)
	if !s.dead() {
		return s, err
	}
	// It may have been woken after the engine and before its folder was asked.
	unlock, err := p.home(id).lock(ctx)
	if err != nil {
		return s, err
	}
	defer unlock()
	return p.observe(ctx, id)
}

// observe asks the engine and then the folder. That a box is dead is certain
// only while its lock is held; then it stays so.
func (p *Provider) observe(ctx context.Context, id string) (seen, error) {
	if !folder.IsID(id) {
		return seen{}, sandbox.ErrGone
	}
	found, err := p.containers(ctx, labelBox+"="+id)
	if err != nil {
		return seen{}, err
	}
	if len(found) == 0 {
		return seen{}, sandbox.ErrGone
	}
	s, err := p.recall(found[0])
	if err == nil && s.dead() {
		err = fmt.Errorf("its container is %s: %w", s.state, sandbox.ErrGone)
	}
	return s, err
}

// settle is what a container of a list is: a box that lives, or, with ErrGone,
// what is left of one.
func (p *Provider) settle(ctx context.Context, c container.Summary) (seen, error) {
	s, err := p.recall(c)
	if err != nil || !s.dead() {
		return s, err
	}
	again, err := p.look(ctx, s.ID)
	if again.container == "" {
		again = s
	}
	return again, err
}

// recall adds to a container what its folder knows. If that has gone, ErrGone.
func (p *Provider) recall(c container.Summary) (seen, error) {
	s := seen{container: c.ID, state: c.State}
	id := c.Labels[labelBox]
	if !folder.IsID(id) {
		return s, fmt.Errorf("container %s has no box: %w", c.ID, sandbox.ErrGone)
	}
	s.ID = id
	r, err := p.home(id).load()
	if err != nil {
		return s, err
	}
	s.record = r
	return s, nil
}

// change loads a box's record, changes it and saves it, if change returns true.
// It returns the record as it is now.
func (p *Provider) change(ctx context.Context, id string, change func(*record) bool) (record, error) {
	unlock, err := p.home(id).lock(ctx)
	if err != nil {
		return record{}, err
	}
	defer unlock()
	return p.home(id).change(change)
}

// change needs the lock. It tells the guest first: a record may promise less
// than the guest keeps, but never more.
func (h home) change(change func(*record) bool) (record, error) {
	r, err := h.load()
	if err != nil || !change(&r) {
		return r, err
	}
	if err := h.promise(r.Expires); err != nil {
		return r, err
	}
	return r, h.save(r)
}

// isGone reports whether a call failed for want of the box, and the work goes on
// without it.
func isGone(err error) bool { return errors.Is(err, sandbox.ErrGone) }
