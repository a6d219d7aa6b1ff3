package docker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"ship/sandbox"
	"ship/sandbox/folder"
)

// How long a guest may take to serve, and how often it is asked meanwhile: that
// it listens is announced by nothing.
const (
	launchPatience = 30 * time.Second
	launchPoll     = 50 * time.Millisecond
)

var errSlow = fmt.Errorf("its guest does not answer: %w", sandbox.ErrTransient)

// bringUp makes sure that a box runs and its guest serves. A box that can only
// be made anew is removed, and the error is ErrGone.
func (p *Provider) bringUp(ctx context.Context, s seen) (seen, error) {
	if err := p.wake(ctx, &s); err != nil {
		return s, err
	}
	if err := p.awaitGuest(ctx, s); err != nil {
		return s, p.giveUp(ctx, s, err)
	}
	s.state = container.StateRunning
	if !s.Paused {
		return s, nil
	}
	var err error
	s.record, err = p.change(ctx, s.ID, func(r *record) bool { r.Paused = false; return true })
	return s, err
}

// wake starts a container that does not run. The lock makes sure that its
// folders are emptied by one, before anybody starts it.
func (p *Provider) wake(ctx context.Context, s *seen) error {
	unlock, err := p.home(s.ID).lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if *s, err = p.observe(ctx, s.ID); err != nil {
		return err
	}
	switch s.state {
	case container.StateRunning:
		return nil
	case container.StatePaused:
		_, err = p.engine.ContainerUnpause(ctx, s.container, client.ContainerUnpauseOptions{})
		return fault(ctx, "waking the container", err)
	case container.StateExited:
		if err := p.refresh(ctx, s.ID); err != nil {
			return fmt.Errorf("emptying its folders: %w", err)
		}
	}
	_, err = p.engine.ContainerStart(ctx, s.container, client.ContainerStartOptions{})
	if err = fault(ctx, "starting the container", err); err != nil && s.state == container.StateCreated && !isPassing(ctx, err) {
		return errors.Join(err, p.remove(ctx, *s))
	}
	return err
}

// isPassing: the same start may go well another time. A box that never ran and
// cannot be started is not kept: it was made by settings that have to change.
func isPassing(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, sandbox.ErrAuth) || isGone(err) || errors.Is(err, sandbox.ErrBusy)
}

// refresh empties what a start of a machine would: nobody is left who knows the
// processes that are described there.
func (p *Provider) refresh(ctx context.Context, id string) error {
	can, err := p.check(ctx)
	if err != nil {
		return err
	}
	h := p.home(id)
	for _, name := range []string{runName, doorFolder} {
		if err := folder.Remove(h.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := h.makeShared(name, can); err != nil {
			return err
		}
	}
	return nil
}

// awaitGuest waits until the guest of a box answers for that box, or its
// container ends.
func (p *Provider) awaitGuest(ctx context.Context, s seen) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.patience, errSlow)
	defer cancel()
	guest := p.client(s.record)
	var last error
	for {
		box, err := guest.Health(ctx)
		if ctx.Err() == nil {
			last = err // what the end of our patience does to a call says nothing
		}
		switch {
		case err == nil && box != s.ID:
			return fmt.Errorf("%q answers: %w", box, sandbox.ErrGone)
		case err == nil:
			return nil
		case isGone(err), errors.Is(err, sandbox.ErrAuth):
			return fmt.Errorf("%w (%s)", err, p.said(ctx, s))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), cmp.Or(last, err))
		case <-time.After(launchPoll):
		}
	}
}

// giveUp passes on why a guest does not answer, and removes the box if it never
// will. A guest that does not start is no box that went: what it said has to be
// seen, and asking again at once would bring the same.
func (p *Provider) giveUp(ctx context.Context, s seen, why error) error {
	if ctx.Err() != nil || !p.isHopeless(ctx, s, why) {
		return why
	}
	if err := p.remove(ctx, s); err != nil {
		return errors.Join(why, err)
	}
	if s.state == container.StateRunning {
		return fmt.Errorf("%w: %w", sandbox.ErrGone, why)
	}
	return fmt.Errorf("starting its guest: %v: %w", why, sandbox.ErrTransient)
}

// isHopeless: a box that has just been made has no files to lose. Another one
// has, and only a door that is shut while the container runs is final: something
// in the box has removed the socket. One that was only started now may be slow,
// and somebody may have paused it meanwhile.
func (p *Provider) isHopeless(ctx context.Context, s seen, why error) bool {
	if s.state == container.StateCreated {
		return true
	}
	if s.state != container.StateRunning || !errors.Is(why, errShut) {
		return false
	}
	now, err := p.look(ctx, s.ID)
	return err == nil && now.state == container.StateRunning
}

// maxSaid bounds what of the guest's complaints goes into an error, in bytes.
const maxSaid = 2 << 10

// said is the end of what the guest complained about.
func (p *Provider) said(ctx context.Context, s seen) string {
	logs, err := p.engine.ContainerLogs(ctx, s.container, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "20"})
	if err != nil {
		return "what it said is not known"
	}
	defer func() { _ = logs.Close() }()
	var text bytes.Buffer
	_, _ = stdcopy.StdCopy(&text, &text, io.LimitReader(logs, 1<<20))
	said := text.String()
	return cmp.Or(strings.TrimSpace(said[max(0, len(said)-maxSaid):]), "it said nothing")
}
