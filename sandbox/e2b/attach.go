package e2b

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
	"ship/sandbox/guest"
)

const (
	// wakeTTL is how long a box lives that is woken without a time of its own.
	wakeTTL = time.Minute
	// probePatience is how long a box that runs, as E2B says, may take to
	// answer. One that was just made or woken is not always known to the proxy
	// at once.
	probePatience = 45 * time.Second
	// marker is the file in a box that counts its pauses.
	marker = sandbox.WorkDir + "/.ship-pauses"
)

// Attach returns a handle on a box, which wakes if it was paused, and lives for
// at least ttl from now. The guest is started if there is none: in a box that
// is new, or whose processes a pause has ended.
//
// A box that comes back from a pause with older files than it went with is
// destroyed and counts as gone: its files are a cache, and a wrong one.
func (p *Provider) Attach(ctx context.Context, id string, ttl time.Duration) (sandbox.Box, error) {
	if err := checkID(id); err != nil {
		return nil, fmt.Errorf("attaching: %w", err)
	}
	box, err := p.attach(ctx, id, ttl)
	if err != nil {
		return nil, fmt.Errorf("attaching to box %s: %w", id, err)
	}
	return box, nil
}

func (p *Provider) attach(ctx context.Context, id string, ttl time.Duration) (sandbox.Box, error) {
	m, err := p.api.get(ctx, id)
	if err != nil {
		return nil, err
	}
	if m.Metadata[labelGateway] != p.gateway {
		return nil, fmt.Errorf("it belongs to others: %w", sandbox.ErrGone)
	}
	key := m.Metadata[sandbox.LabelSession]
	r, _, err := p.records.load(ctx, key)
	if err != nil {
		return nil, err
	}
	woken := m.State == sandbox.Paused
	if woken || r.Box != id || r.Access.Traffic == "" {
		r, err = p.connect(ctx, m, ttl)
	} else {
		err = p.extend(ctx, m, time.Now().Add(ttl))
	}
	if err != nil {
		return nil, err
	}
	box, err := p.reach(ctx, id, r.Access)
	if errors.Is(err, sandbox.ErrAuth) { // Its tokens are not those that we know.
		if r, err = p.connect(ctx, m, ttl); err == nil {
			box, err = p.reach(ctx, id, r.Access)
		}
	}
	if err == nil && woken {
		err = p.compare(ctx, box, m, r)
	}
	if err != nil {
		return nil, err
	}
	return box, nil
}

// Peek returns a handle on a box that runs and has a guest, and changes nothing
// about it. ErrBusy: it is paused, and stays so.
func (p *Provider) Peek(ctx context.Context, id string) (sandbox.Box, error) {
	if err := checkID(id); err != nil {
		return nil, fmt.Errorf("looking for a box: %w", err)
	}
	client, err := p.peek(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("looking for box %s: %w", id, err)
	}
	return client, nil
}

func (p *Provider) peek(ctx context.Context, id string) (*guest.Client, error) {
	m, err := p.api.get(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case m.Metadata[labelGateway] != p.gateway:
		return nil, fmt.Errorf("it belongs to others: %w", sandbox.ErrGone)
	case m.State == sandbox.Paused:
		return nil, errAsleep
	}
	r, _, err := p.records.load(ctx, m.Metadata[sandbox.LabelSession])
	if err != nil {
		return nil, err
	}
	if r.Box != id {
		return nil, fmt.Errorf("its tokens are not known: %w", sandbox.ErrTransient)
	}
	return p.guestClient(id, r.Access)
}

// connect wakes a box, or only asks for its tokens, and keeps them at once.
// What it was to live before, a running box lives on.
func (p *Provider) connect(ctx context.Context, m machine, ttl time.Duration) (record, error) {
	if ttl <= 0 && m.State == sandbox.Paused {
		ttl = wakeTTL
	}
	got, err := p.api.connect(ctx, m.ID, min(max(ttl, time.Second), p.cfg.MaxLife))
	if err != nil {
		return record{}, fmt.Errorf("connecting: %w", err)
	}
	r, err := p.records.update(ctx, m.Metadata[sandbox.LabelSession], m.ID, func(r *record) {
		r.Generation = max(r.Generation, m.generation())
		r.Access = got.access
	})
	if err == nil {
		err = p.ensure(ctx, m, ttl)
	}
	return r, err
}

// ensure sets the time again that is wanted: a connect may have set another,
// whatever the box had before. It looks when the box ends now, as only that
// counts.
func (p *Provider) ensure(ctx context.Context, before machine, ttl time.Duration) error {
	until := time.Now().Add(ttl)
	if before.State != sandbox.Paused && before.Ends.After(until) {
		until = before.Ends
	}
	now, err := p.api.get(ctx, before.ID)
	if err == nil {
		err = p.extend(ctx, now, until)
	}
	if err != nil {
		return fmt.Errorf("setting how long it lives: %w", err)
	}
	return nil
}

// reach returns a handle whose guest has answered with the box's own id.
func (p *Provider) reach(ctx context.Context, id string, a access) (*guest.Client, error) {
	client, err := p.guestClient(id, a)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(probePatience)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := p.confirm(ctx, id, p.probe(ctx, client, id, a))
		if err == nil {
			return client, nil
		}
		passing := errors.Is(err, sandbox.ErrTransient) || errors.Is(err, sandbox.ErrBusy) && !errors.Is(err, errAsleep)
		if ctx.Err() != nil || !passing || time.Now().After(deadline) {
			return nil, err
		}
		if err := sandbox.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// probe asks the guest whose box it is, and starts it if it does not answer.
func (p *Provider) probe(ctx context.Context, client *guest.Client, id string, a access) error {
	err := healthy(ctx, client, id)
	if !errors.Is(err, sandbox.ErrTransient) {
		return err
	}
	if err := p.bringUp(ctx, id, a); err != nil {
		return err
	}
	return healthy(ctx, client, id)
}

// healthPatience is how long a guest may take to say whose it is.
const healthPatience = 10 * time.Second

func healthy(ctx context.Context, client *guest.Client, id string) error {
	short, cancel := context.WithTimeoutCause(ctx, healthPatience, sandbox.ErrTransient)
	defer cancel()
	switch box, err := client.Health(short); {
	case err != nil:
		return fmt.Errorf("probing it: %w", err)
	case box != id:
		return fmt.Errorf("probing it: box %q answers: %w", box, sandbox.ErrGone)
	}
	return nil
}

// confirm asks E2B's API about a box that its proxy does not know, or not yet.
func (p *Provider) confirm(ctx context.Context, id string, err error) error {
	if !errors.Is(err, sandbox.ErrGone) {
		return err
	}
	switch m, look := p.api.get(ctx, id); {
	case look != nil:
		return look
	case m.State == sandbox.Paused:
		return errAsleep
	}
	return fmt.Errorf("it runs, and cannot be reached yet: %w", sandbox.ErrTransient)
}

// errAsleep does not pass by itself: the next Attach wakes the box.
var errAsleep = fmt.Errorf("it was paused meanwhile: %w", sandbox.ErrBusy)

var errOlder = errors.New("it came back from a pause with older files")

// compare looks whether the files of a woken box are those that it had when it
// was paused.
func (p *Provider) compare(ctx context.Context, box sandbox.Box, m machine, r record) error {
	text, err := box.ReadFrom(ctx, marker, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking whether its files are the latest: %w", err)
	}
	count, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if count >= r.Pauses {
		return nil
	}
	p.cfg.Logger.Warn("a box lost files in a pause and is destroyed", "box", m.ID, "pause", r.Pauses, "files_of_pause", count)
	if err := p.Destroy(ctx, m.ID); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errOlder, sandbox.ErrGone)
}

// Pause stops a box and keeps its files, and with Settings.PauseMemory its
// processes. A paused box: nil. Before, the pause is counted in the box as well
// as outside, for compare. If the box cannot be reached for that, it is paused
// uncounted.
func (p *Provider) Pause(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("pausing: %w", err)
	}
	m, err := p.api.get(ctx, id)
	if err == nil && m.State != sandbox.Paused {
		err = p.pause(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("pausing box %s: %w", id, err)
	}
	return nil
}

func (p *Provider) pause(ctx context.Context, m machine) error {
	if err := p.count(ctx, m); err != nil {
		p.cfg.Logger.Warn("a pause is not counted", "box", m.ID, "err", err)
	}
	err := p.api.pause(ctx, m.ID, p.cfg.PauseMemory)
	if !errors.Is(err, sandbox.ErrBusy) {
		return err
	}
	if now, look := p.api.get(ctx, m.ID); look == nil && now.State == sandbox.Paused {
		return nil // Somebody else was faster.
	}
	return err
}

// count writes the number of the coming pause into the box first. Outside it is
// never ahead of what a pause that went well has kept.
func (p *Provider) count(ctx context.Context, m machine) error {
	key := m.Metadata[sandbox.LabelSession]
	r, _, err := p.records.load(ctx, key)
	if err != nil || r.Box != m.ID {
		return err
	}
	client, err := p.guestClient(m.ID, r.Access)
	if err != nil {
		return err
	}
	next := r.Pauses + 1
	if err := client.Write(ctx, marker, []byte(strconv.Itoa(next)+"\n"), 0o644); err != nil {
		return err
	}
	_, err = p.records.update(ctx, key, m.ID, func(r *record) { r.Pauses = max(r.Pauses, next) })
	return err
}
