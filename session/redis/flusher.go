package redis

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"ship/session"
)

const (
	// maxGroup and maxGroupBytes bound how long one group keeps the server
	// from serving anybody else: a few milliseconds.
	maxGroup      = 256
	maxGroupBytes = 1 << 20
)

// errClosed: the store was closed before the delivery was taken.
var errClosed = errors.New("store is closed")

// parcel is a delivery on its way to the server.
type parcel struct {
	ctx   context.Context // of the caller who waits
	shard int
	keys  []string
	args  []any
	size  int // bytes of the event

	receipt session.Receipt
	err     error
	done    chan struct{} // closed when receipt or err is set
}

// flusher commits in groups. While one group is on its way to the server and
// its disk, the parcels that come in make up the next one, so that the price
// of a disk flush is shared by all who wait. It never waits for company: alone,
// a parcel leaves at once.
type flusher struct {
	write   func(context.Context, []*parcel)
	parcels chan *parcel
	quit    chan struct{}
	loops   sync.WaitGroup
}

// newFlusher starts the goroutines that stop ends. Each has one group at a time
// on its way; write is called by as many of them at once.
func newFlusher(ctx context.Context, write func(context.Context, []*parcel), lanes int) *flusher {
	f := &flusher{
		write: write,
		// Without a buffer: a parcel that was not taken was not sent.
		parcels: make(chan *parcel),
		quit:    make(chan struct{}),
	}
	for range lanes {
		f.loops.Go(func() { f.loop(ctx) })
	}
	return f
}

// stop returns when the groups that are on their way have arrived.
func (f *flusher) stop() {
	close(f.quit)
	f.loops.Wait()
}

// do hands a parcel over and waits for what becomes of it. When ctx ends the
// parcel may be written nevertheless.
func (f *flusher) do(ctx context.Context, p *parcel) error {
	p.ctx, p.done = ctx, make(chan struct{})
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-f.quit:
		return errClosed
	case f.parcels <- p:
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.done:
		return p.err
	}
}

func (f *flusher) loop(ctx context.Context) {
	for {
		select {
		case <-f.quit:
			return
		case p := <-f.parcels:
			f.flush(ctx, f.gather(p))
		}
	}
}

// gather takes what waits already, up to the bounds of a group.
func (f *flusher) gather(first *parcel) []*parcel {
	// Those who were answered just now are about to send their next parcel.
	// Let them, or every other group would have only one in it.
	runtime.Gosched()
	group, size := []*parcel{first}, first.size
	for len(group) < maxGroup && size < maxGroupBytes {
		select {
		case p := <-f.parcels:
			group, size = append(group, p), size+p.size
		default:
			return group
		}
	}
	return group
}

// flush writes the parcels whose callers still wait.
func (f *flusher) flush(ctx context.Context, group []*parcel) {
	var wanted []*parcel
	for _, p := range group {
		if p.err = context.Cause(p.ctx); p.err == nil {
			wanted = append(wanted, p)
		}
	}
	if len(wanted) > 0 {
		f.write(ctx, wanted)
	}
	for _, p := range group {
		close(p.done)
	}
}
