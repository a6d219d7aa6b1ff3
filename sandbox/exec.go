package sandbox

import (
	"context"
	"fmt"
	"time"
)

// MaxOutput is how much output Exec hands on, in bytes. The rest is in the
// file that Output.Output names.
const MaxOutput = 4 << 20

// How often Exec looks: soon at first, as most commands are short.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// Output is a process that has ended, with what it printed.
type Output struct {
	Process
	// Data is the beginning of stdout and stderr, at most MaxOutput bytes.
	Data []byte
	// Truncated: there is more than Data holds.
	Truncated bool
}

// Exec runs a command in a box and waits for its end. An exit code other than
// zero is not an error. When ctx ends first, the process goes on: calling Exec
// again with the same name waits for the same process, as it does after a
// restart.
func Exec(ctx context.Context, box Box, cmd Command) (Output, error) {
	p, err := box.Spawn(ctx, cmd)
	if err != nil {
		return Output{}, fmt.Errorf("starting %s: %w", cmd.Name, err)
	}
	if p.Running {
		if p, err = wait(ctx, box, cmd.Name); err != nil {
			return Output{}, fmt.Errorf("waiting for %s: %w", cmd.Name, err)
		}
	}
	data, err := collect(ctx, box, p)
	if err != nil {
		return Output{}, fmt.Errorf("reading the output of %s: %w", cmd.Name, err)
	}
	return Output{Process: p, Data: data, Truncated: int64(len(data)) < p.Size}, nil
}

func wait(ctx context.Context, box Box, name string) (Process, error) {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		if err := Sleep(ctx, pause); err != nil {
			return Process{}, err
		}
		p, err := box.Process(ctx, name)
		if err != nil || !p.Running {
			return p, err
		}
	}
}

// collect reads what was there when the process ended: a child that it left
// behind may print for ever.
func collect(ctx context.Context, box Box, p Process) ([]byte, error) {
	want := min(p.Size, MaxOutput)
	var data []byte
	for int64(len(data)) < want {
		more, err := box.ReadFrom(ctx, p.Output, int64(len(data)))
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			break
		}
		data = append(data, more...)
	}
	return data[:min(int64(len(data)), want)], nil
}
