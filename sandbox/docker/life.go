package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"ship/sandbox"
	"ship/sandbox/folder"
)

// Attach returns a handle on a box, wakes it if it is paused, and extends it by
// ttl, if that is positive.
func (p *Provider) Attach(ctx context.Context, id string, ttl time.Duration) (sandbox.Box, error) {
	s, err := p.look(ctx, id)
	if err == nil {
		// Before it is woken: its guest looks at once how long it may live.
		s.record, err = p.extend(ctx, id, time.Now().Add(ttl))
	}
	if err == nil {
		s, err = p.bringUp(ctx, s)
	}
	if err != nil {
		return nil, fmt.Errorf("attaching to box %s: %w", id, err)
	}
	return p.client(s.record), nil
}

// Peek returns a handle on a box that runs, and changes nothing about it: it is
// neither woken nor extended. One that is paused is sandbox.ErrBusy.
func (p *Provider) Peek(ctx context.Context, id string) (sandbox.Box, error) {
	s, err := p.look(ctx, id)
	if err == nil && s.asleep() {
		err = fmt.Errorf("it is paused: %w", sandbox.ErrBusy)
	}
	if err != nil {
		return nil, fmt.Errorf("looking into box %s: %w", id, err)
	}
	return p.client(s.record), nil
}

// Info returns what is known of a box that lives, asleep or not.
func (p *Provider) Info(ctx context.Context, id string) (sandbox.Info, error) {
	s, err := p.look(ctx, id)
	if err != nil {
		return sandbox.Info{}, fmt.Errorf("looking at box %s: %w", id, err)
	}
	return s.info(), nil
}

// Extend moves a box's expiry, and never shortens it.
func (p *Provider) Extend(ctx context.Context, id string, until time.Time) error {
	_, err := p.look(ctx, id)
	if err == nil {
		_, err = p.extend(ctx, id, until)
	}
	if err != nil {
		return fmt.Errorf("extending box %s: %w", id, err)
	}
	return nil
}

func (p *Provider) extend(ctx context.Context, id string, until time.Time) (record, error) {
	return p.change(ctx, id, func(r *record) bool {
		if !until.After(r.Expires) {
			return false
		}
		r.Expires = until.UTC()
		return true
	})
}

// Pause ends the processes of a box and keeps its files. To freeze it instead
// would keep its memory taken, which one machine is short of, and would stop the
// guest's clock: a box that nobody comes back to would never end.
func (p *Provider) Pause(ctx context.Context, id string) error {
	if err := p.pause(ctx, id); err != nil {
		return fmt.Errorf("pausing box %s: %w", id, err)
	}
	return nil
}

// pause holds the lock throughout: whoever holds it next sees both that the
// container has ended and that we wanted it to. If we are killed between the
// two, the box runs on, which counts for more than the mark.
func (p *Provider) pause(ctx context.Context, id string) error {
	if !folder.IsID(id) {
		return sandbox.ErrGone
	}
	unlock, err := p.home(id).lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := p.observe(ctx, id)
	if err != nil || s.asleep() {
		return err
	}
	if _, err := p.home(id).change(func(r *record) bool { r.Paused = true; return true }); err != nil {
		return err
	}
	_, err = p.engine.ContainerStop(ctx, s.container, client.ContainerStopOptions{})
	return fault(ctx, "stopping the container", err)
}

// List returns the boxes that live and carry all of these labels, the oldest
// first. On its way it removes what is left of boxes that have ended.
func (p *Provider) List(ctx context.Context, labels map[string]string) ([]sandbox.Info, error) {
	found, err := p.containers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing boxes: %w", err)
	}
	var infos []sandbox.Info
	for _, c := range found {
		s, err := p.settle(ctx, c)
		switch {
		case err != nil && !isGone(err):
			return nil, fmt.Errorf("listing boxes: %w", err)
		case err != nil:
			p.sweep(ctx, s)
		case sandbox.Carries(s.info().Labels, labels):
			infos = append(infos, s.info())
		}
	}
	p.sweepFolders(ctx)
	slices.SortFunc(infos, func(a, b sandbox.Info) int { return a.Created.Compare(b.Created) })
	return infos, nil
}

// sweep removes what is left of a box. That it fails must not hide those that
// live.
func (p *Provider) sweep(ctx context.Context, s seen) {
	if err := p.remove(ctx, s); err != nil {
		p.cfg.Logger.Warn("what is left of a box cannot be removed", "box", s.ID, "container", s.container, "error", err)
	}
}

// strayAge is how old a folder without a container has to be: one that is
// younger may just be getting its container.
const strayAge = 10 * time.Minute

// sweepFolders removes folders whose box nobody knows: who made or removed it
// was killed.
func (p *Provider) sweepFolders(ctx context.Context) {
	entries, err := os.ReadDir(p.cfg.Dir)
	for _, entry := range entries {
		path := filepath.Join(p.cfg.Dir, entry.Name())
		switch {
		case folder.IsGrave(entry.Name()):
			err = folder.Remove(path)
		case folder.IsID(entry.Name()) && isOld(entry):
			err = p.sweepFolder(ctx, entry.Name())
		}
		if err != nil {
			p.cfg.Logger.Warn("the folder of a box that is gone cannot be removed", "folder", entry.Name(), "error", err)
		}
	}
}

func isOld(entry os.DirEntry) bool {
	info, err := entry.Info()
	return err == nil && time.Since(info.ModTime()) > strayAge
}

func (p *Provider) sweepFolder(ctx context.Context, id string) error {
	found, err := p.containers(ctx, labelBox+"="+id)
	if err != nil || len(found) > 0 {
		return err
	}
	return p.home(id).bury()
}

// Destroy ends a box, its processes and its files.
func (p *Provider) Destroy(ctx context.Context, id string) error {
	if err := p.destroy(ctx, id); err != nil {
		return fmt.Errorf("destroying box %s: %w", id, err)
	}
	return nil
}

func (p *Provider) destroy(ctx context.Context, id string) error {
	if !folder.IsID(id) {
		return nil
	}
	found, err := p.containers(ctx, labelBox+"="+id)
	if err != nil {
		return err
	}
	for _, c := range found {
		if err := p.removeContainer(ctx, c.ID); err != nil {
			return err
		}
	}
	return p.home(id).bury()
}

// remove removes a container and the folder of its box, if it has one.
func (p *Provider) remove(ctx context.Context, s seen) error {
	if err := p.removeContainer(ctx, s.container); err != nil || !folder.IsID(s.ID) {
		return err
	}
	return p.home(s.ID).bury()
}

// removeContainer returns when the container is gone, whoever removed it.
func (p *Provider) removeContainer(ctx context.Context, id string) error {
	_, err := p.engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) {
		err = p.awaitRemoval(ctx, id)
	}
	if errdefs.IsNotFound(err) {
		return nil
	}
	return fault(ctx, "removing the container", err)
}

// awaitRemoval: somebody else removes it just now.
func (p *Provider) awaitRemoval(ctx context.Context, id string) error {
	wait := p.engine.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select {
	case err := <-wait.Error:
		return err
	case <-wait.Result:
		return nil
	}
}
