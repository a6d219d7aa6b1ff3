package guest

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxOutput is how much of a process's output is kept, in bytes.
	maxOutput = 64 << 20
	// maxPipe is the most that a pipe can hold: how much may be left in it when
	// the process that wrote it has ended.
	maxPipe = 1 << 20
)

// cutNote is the last line of an output file that has become too long.
var cutNote = fmt.Appendf(nil, "\n[ship: output beyond %d MiB is dropped]\n", maxOutput>>20)

// output copies what a process prints into its file. It goes on for as long as
// anybody holds the other end of the pipe, and reads on when the file is full,
// so that nobody who writes ever waits or dies.
type output struct {
	pipe, file *os.File
	size       atomic.Int64
	full       bool
	// drained is closed when the file holds all that was in the pipe at the
	// moment when settle was called.
	drained chan struct{}
}

// newOutput returns the output, and the end of it that the process gets.
func newOutput(file *os.File) (*output, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &output{pipe: read, file: file, drained: make(chan struct{})}, write, nil
}

// settle waits until what the ended process has written is in the file, but
// not for children of it that still hold the pipe.
func (o *output) settle() {
	// The deadline only interrupts a read that waits; see copy.
	_ = o.pipe.SetReadDeadline(time.Unix(1, 0))
	<-o.drained
}

// copy returns when nobody can write any more.
func (o *output) copy() {
	defer func() { _, _ = o.pipe.Close(), o.file.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := o.pipe.Read(buf)
		o.keep(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.drain(buf)
			close(o.drained)
			err = o.pipe.SetReadDeadline(time.Time{})
		}
		if err != nil {
			o.ended()
			return
		}
	}
}

// ended lets settle return, now or later, when the pipe has ended by itself.
func (o *output) ended() {
	select {
	case <-o.drained:
	default:
		close(o.drained)
	}
}

// drain takes what is in the pipe now. A child that never stops writing cannot
// hold it up.
func (o *output) drain(buf []byte) {
	raw, err := o.pipe.SyscallConn()
	if err != nil {
		return
	}
	for taken := 0; taken < maxPipe; {
		var n int
		if err := raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), buf) }); err != nil {
			return
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		o.keep(buf[:n])
		taken += n
	}
}

// keep appends to the file while it has room. When something cannot be written
// (the disk is full), all that comes after it is dropped as well: what is in the
// file is the beginning of the output, with nothing missing in between.
func (o *output) keep(data []byte) {
	if o.full || len(data) == 0 {
		return
	}
	if room := maxOutput - o.size.Load(); int64(len(data)) > room {
		o.full = true
		data = append(data[:room:room], cutNote...)
	}
	n, err := o.file.Write(data)
	o.size.Add(int64(n))
	o.full = o.full || err != nil
}
