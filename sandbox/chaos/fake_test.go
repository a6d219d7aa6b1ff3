package chaos

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"

	"ship/sandbox"
)

// yard is a provider with boxes in memory. What it was asked to change is in did.
type yard struct {
	boxes map[string]*place
	did   []string
}

// place is a box. Its processes have ended when they are asked for.
type place struct {
	sandbox.Box
	yard  *yard
	info  sandbox.Info
	files map[string]string
	ran   []sandbox.Command
}

func newYard() *yard { return &yard{boxes: map[string]*place{}} }

func (y *yard) note(what, id string) { y.did = append(y.did, what+" "+id) }

func (y *yard) find(id string) (*place, error) {
	if b := y.boxes[id]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("box %s: %w", id, sandbox.ErrGone)
}

func (y *yard) Create(_ context.Context, spec sandbox.Spec) (sandbox.Info, error) {
	id := "box-" + spec.Key
	if b := y.boxes[id]; b != nil {
		return b.info, nil
	}
	y.note("made", id)
	y.boxes[id] = &place{yard: y, info: sandbox.Info{ID: id, Key: spec.Key, State: sandbox.Running}, files: map[string]string{}}
	return y.boxes[id].info, nil
}

func (y *yard) Attach(_ context.Context, id string, _ time.Duration) (sandbox.Box, error) {
	b, err := y.find(id)
	if err != nil {
		return nil, err
	}
	b.info.State = sandbox.Running
	return b, nil
}

func (y *yard) Info(_ context.Context, id string) (sandbox.Info, error) {
	b, err := y.find(id)
	if err != nil {
		return sandbox.Info{}, err
	}
	return b.info, nil
}

func (y *yard) List(context.Context, map[string]string) (all []sandbox.Info, err error) {
	for _, b := range y.boxes {
		all = append(all, b.info)
	}
	return all, nil
}

func (y *yard) Extend(_ context.Context, id string, _ time.Time) error {
	y.note("extended", id)
	_, err := y.find(id)
	return err
}

func (y *yard) Pause(_ context.Context, id string) error {
	y.note("paused", id)
	b, err := y.find(id)
	if err == nil {
		b.info.State = sandbox.Paused
	}
	return err
}

func (y *yard) Destroy(_ context.Context, id string) error {
	y.note("destroyed", id)
	delete(y.boxes, id)
	return nil
}

// alive is what every call to a box asks first.
func (b *place) alive() error {
	_, err := b.yard.find(b.info.ID)
	return err
}

func (b *place) Spawn(_ context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	b.ran = append(b.ran, cmd)
	return sandbox.Process{Name: cmd.Name}, b.alive()
}

func (b *place) Process(_ context.Context, name string) (sandbox.Process, error) {
	return sandbox.Process{Name: name}, b.alive()
}

func (b *place) Kill(context.Context, string, time.Duration) error { return b.alive() }

func (b *place) ReadFrom(_ context.Context, path string, off int64) ([]byte, error) {
	return []byte(b.files[path][off:]), b.alive()
}

func (b *place) Write(_ context.Context, path string, data []byte, _ fs.FileMode) error {
	b.files[path] = string(data)
	return b.alive()
}

// Dial connects to somebody who talks without end.
func (b *place) Dial(context.Context, int) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		for err := error(nil); err == nil; {
			_, err = theirs.Write([]byte(strings.Repeat("word ", 100)))
		}
	}()
	return ours, b.alive()
}
