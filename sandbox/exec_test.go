package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ship/sandbox"
)

// box has one process, which ends at a given time.
type box struct {
	sandbox.Box
	ends   time.Time
	output []byte
	size   int64
	fault  error
	looks  int
}

func (b *box) Spawn(_ context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	if len(cmd.Args) == 0 {
		return sandbox.Process{}, errors.New("no program")
	}
	return b.state(), nil
}

func (b *box) state() sandbox.Process {
	p := sandbox.Process{Name: "p", Running: time.Now().Before(b.ends), ExitCode: -1, Output: "/out", Size: b.size}
	if !p.Running {
		p.ExitCode = 2
	}
	return p
}

func (b *box) Process(context.Context, string) (sandbox.Process, error) {
	b.looks++
	return b.state(), b.fault
}

func (b *box) ReadFrom(_ context.Context, _ string, off int64) ([]byte, error) {
	off = min(off, int64(len(b.output)))
	return b.output[off:min(off+1<<20, int64(len(b.output)))], nil
}

var command = sandbox.Command{Name: "p", Args: []string{"x"}}

func TestExecWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		text := []byte("hello")
		b := &box{ends: time.Now().Add(time.Minute), output: text, size: 5}
		out, err := sandbox.Exec(t.Context(), b, command)
		if err != nil || out.ExitCode != 2 || string(out.Data) != "hello" || out.Truncated {
			t.Errorf("%+v, %v", out, err)
		}
		if late := time.Since(b.ends); late > time.Second || b.looks > 300 {
			t.Errorf("%d looks, %s late", b.looks, late)
		}
	})
}

func TestExecBounds(t *testing.T) {
	t.Parallel()
	b := &box{output: bytes.Repeat([]byte("x"), 6<<20), size: 6 << 20}
	out, err := sandbox.Exec(t.Context(), b, command)
	if err != nil || len(out.Data) != sandbox.MaxOutput || !out.Truncated {
		t.Errorf("%d bytes, truncated %v, %v", len(out.Data), out.Truncated, err)
	}
	// A child that prints on does not count.
	b.size = 3
	if out, err = sandbox.Exec(t.Context(), b, command); err != nil || string(out.Data) != "xxx" || out.Truncated {
		t.Errorf("%q, truncated %v, %v", out.Data, out.Truncated, err)
	}
	// A file that somebody has cut does not hold it up.
	b.output, b.size = nil, 10
	if out, err = sandbox.Exec(t.Context(), b, command); err != nil || len(out.Data) != 0 || !out.Truncated {
		t.Errorf("%q, truncated %v, %v", out.Data, out.Truncated, err)
	}
}

func TestExecFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if _, err := sandbox.Exec(t.Context(), &box{}, sandbox.Command{Name: "p"}); err == nil {
			t.Error("no error")
		}
		b := &box{ends: time.Now().Add(time.Hour), fault: sandbox.ErrGone}
		if _, err := sandbox.Exec(t.Context(), b, command); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("%v", err)
		}
		b.fault = nil
		cause := errors.New("stop requested")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
		defer cancel()
		if _, err := sandbox.Exec(ctx, b, command); !errors.Is(err, cause) {
			t.Errorf("%v", err)
		}
	})
}
