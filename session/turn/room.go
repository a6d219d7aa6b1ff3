package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
)

// reserve is a file in a box that only takes room. It is given up when the disk
// is full, so that what the agent did can be brought out of the box after all.
type reserve struct {
	path string
	// size in bytes, and how many have to be left beside it for it to be made.
	size, beside int64
}

// workReserve is for the commits that are made of what the agent left, and for
// git's index, which is written as a whole.
func workReserve() reserve { return reserve{sandbox.WorkDir + "/.ship-reserve", 16 << 20, 16 << 20} }

// lastReserve is for what is small and has to be written even if not all of the
// work can be: a token, the box's marker, what a process prints.
func lastReserve() reserve {
	return reserve{sandbox.WorkDir + "/.ship-reserve-last", 1 << 20, 64 << 10}
}

// tidyReserve is for the one process that makes room after all else is used up.
func tidyReserve() reserve {
	return reserve{sandbox.WorkDir + "/.ship-reserve-tidy", 256 << 10, 64 << 10}
}

// reserveRoom makes the files that are not there, as far as there is room. Their content is random, for there are file systems
// on which zeros take no room.
const reserveRoom = `
while [ $# -gt 0 ]; do
	if [ ! -s "$1" ] && [ $(( $(stat -f -c '%a * %S' .) )) -ge $(( $2 + $3 )) ]; then
		head -c "$2" /dev/urandom >"$1.new" && mv -f "$1.new" "$1" || { rm -f "$1.new"; exit 1; }
	fi
	shift 3
done`

// keepRoom reserves room in a box that a turn begins in. A box without does as
// well, until its disk is full. May be called again.
func (w *Worker) keepRoom(ctx context.Context, box sandbox.Box) {
	args := []string{"sh", "-c", reserveRoom, "sh"}
	for _, r := range []reserve{lastReserve(), tidyReserve(), workReserve()} {
		args = append(args, r.path, strconv.FormatInt(r.size, 10), strconv.FormatInt(r.beside, 10))
	}
	out, err := sandbox.Exec(ctx, box, sandbox.Command{Name: processName("reserve"), Dir: sandbox.WorkDir, Args: args})
	if err == nil && out.ExitCode != 0 {
		err = fmt.Errorf("exit %d: %s", out.ExitCode, out.Data)
	}
	if err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "reserve room on the box's disk", "err", err)
	}
}

// look tells whether a reserve is there, or was given up and not made again.
func (r reserve) look(ctx context.Context, box sandbox.Box) (there, spent bool, err error) {
	last, err := box.ReadFrom(ctx, r.path, r.size-1)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("look for reserved room: %w", err)
	}
	return len(last) > 0, len(last) == 0, nil
}

// giveUp tells whether a reserve was there and is not any more. It starts no
// process: that takes room on the disk, while an empty file mostly takes none.
func (r reserve) giveUp(ctx context.Context, box sandbox.Box) (bool, error) {
	there, _, err := r.look(ctx, box)
	if err != nil || !there {
		return false, err
	}
	if err := box.Write(ctx, r.path, nil, 0o600); err != nil {
		return false, fmt.Errorf("give up reserved room: %w", err)
	}
	return true, nil
}

// withRoom does something in a box, once more after each reserve that it has to
// give up for that.
func (w *Worker) withRoom(ctx context.Context, box sandbox.Box, reserves []reserve, do func() error) error {
	err := do()
	for _, r := range reserves {
		if !noRoom(err) {
			return err
		}
		gone, giving := r.giveUp(ctx, box)
		if giving != nil {
			return errors.Join(err, giving)
		}
		if gone {
			w.Log.WarnContext(ctx, "the box's disk is full: reserved room is given up", "bytes", r.size, "err", err)
			err = onceFreed(ctx, do)
		}
	}
	return err
}

// onceFreed tries a few times: the room of a file is free only when the last
// process that has it open, if only because it is just being started, closes it.
func onceFreed(ctx context.Context, do func() error) error {
	err := do()
	for range 3 {
		if !noRoom(err) || sandbox.Sleep(ctx, 200*time.Millisecond) != nil {
			return err
		}
		err = do()
	}
	return err
}

// noRoom: a disk in the box is full, which nothing changes but somebody who
// deletes something. A box tells it in the words of its system only, and git
// sometimes in its own. What the remote says is about another disk.
func noRoom(err error) bool {
	if err == nil {
		return false
	}
	for line := range strings.Lines(strings.ToLower(err.Error())) {
		here := !strings.Contains(line, "remote: ")
		if here && slices.ContainsFunc(fullDisk(), func(words string) bool { return strings.Contains(line, words) }) {
			return true
		}
	}
	return false
}

// fullDisk is what is said of a disk without room: by the system, and by git of
// its index and of its refs.
func fullDisk() []string {
	return []string{"no space left on device", "write error. out of diskspace", "couldn't write '"}
}

// complete ends what a process printed. A box whose disk is full drops output,
// and of a process that could not be heard it must not be thought that it had
// nothing to say.
const complete = "\nship: that is all\n"

var errIncomplete = errors.New("what it printed could not be kept: no space left on device")

// whole takes the last line off that tells that nothing is missing.
func whole(out *sandbox.Output) error {
	if out.Truncated { // no caller takes the beginning for all; read looks at the end
		return nil
	}
	data, ok := bytes.CutSuffix(out.Data, []byte(complete))
	if !ok && out.Signal == "" {
		return errIncomplete
	}
	out.Data, out.Size = data, int64(len(data))
	return nil
}
