package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"ship/sandbox"
)

// bounds are what may be pushed, in bytes and files.
type bounds struct {
	// file: code hosts refuse 100 MB. A batch of objects to scan is not larger
	// either, and fits into what a box keeps of a process's output.
	file int64
	// push is all that is pushed at once.
	push int64
	// strays is how many new files an agent may leave to us to commit. What it
	// commits by itself, it means.
	strays int
}

func usualBounds() bounds { return bounds{file: 50 << 20, push: 200 << 20, strays: 2000} }

// minSecret: what is shorter is found in a text by accident.
const minSecret = 12

// What is not pushed, whoever has committed it.
var (
	errBulky  = errors.New("there is more to push than anybody would review")
	errSecret = errors.New("a secret that ship knows is among what would be pushed")
)

// oversizedError is a file in a commit that the code host would refuse.
type oversizedError struct {
	path string
	size int64
}

func (e *oversizedError) Error() string {
	return fmt.Sprintf("%q has %d bytes", e.path, e.size)
}

// object is something that a push would bring to the remote.
type object struct {
	id, path string
	size     int64
}

// inspect looks at all that a push of head would bring: every object, with
// those of commits that a later one takes back, but for what was inspected. It
// guards against accidents; who wants to hide something from it can.
func (r *repository) inspect(ctx context.Context, head string, inspected ...string) error {
	objects, err := r.outgoing(ctx, head, inspected)
	if err != nil {
		return err
	}
	var total int64
	for _, o := range objects {
		if o.size > r.bounds.file {
			return &oversizedError{o.path, o.size}
		}
		total += o.size
	}
	if total > r.bounds.push {
		return fmt.Errorf("%w: %d objects of %d bytes", errBulky, len(objects), total)
	}
	return r.scan(ctx, objects)
}

// outgoing lists what the remote does not have yet.
func (r *repository) outgoing(ctx context.Context, head string, inspected []string) ([]object, error) {
	args := append([]string{"rev-list", "--objects", head, "--not", "--remotes=origin"}, inspected...)
	out, err := r.exec(ctx, "", args...)
	if err != nil {
		return nil, err
	}
	var objects []object
	for line := range strings.Lines(string(out.Data)) {
		id, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		objects = append(objects, object{id: id, path: path})
	}
	if out.Truncated {
		return nil, fmt.Errorf("%w: more than %d objects", errBulky, len(objects))
	}
	return objects, r.measure(ctx, objects)
}

// measure fills in the sizes.
func (r *repository) measure(ctx context.Context, objects []object) error {
	if len(objects) == 0 {
		return nil
	}
	sizes, err := r.git(ctx, lines(objects), "cat-file", "--batch-check=%(objectsize)")
	if err != nil {
		return err
	}
	fields := strings.Fields(sizes)
	if len(fields) != len(objects) {
		return fmt.Errorf("measure %d objects: %d sizes", len(objects), len(fields))
	}
	for i := range objects {
		if objects[i].size, err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return fmt.Errorf("measure %s: %w", objects[i].id, err)
		}
	}
	return nil
}

// lines are the objects as git reads them.
func lines(objects []object) string {
	var b strings.Builder
	for _, o := range objects {
		b.WriteString(o.id + "\n")
	}
	return b.String()
}

// scan looks for the secrets in objects. They do not go into the box for that;
// the objects come out of it.
func (r *repository) scan(ctx context.Context, objects []object) error {
	if len(r.secrets) == 0 {
		return nil
	}
	for len(objects) > 0 {
		batch, size := 1, objects[0].size
		for batch < len(objects) && size+objects[batch].size <= r.bounds.file {
			size += objects[batch].size
			batch++
		}
		out, err := r.exec(ctx, lines(objects[:batch]), "cat-file", "--batch")
		if err != nil {
			return err
		}
		objects = objects[batch:]
		if err := r.read(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// read goes through all that a process printed. A secret may lie across two
// pieces of it.
func (r *repository) read(ctx context.Context, out sandbox.Output) error {
	overlap := len(complete)
	for _, s := range r.secrets {
		overlap = max(overlap, len(s)-1)
	}
	piece := out.Data
	for at := int64(len(piece)); ; {
		for _, s := range r.secrets {
			if bytes.Contains(piece, []byte(s)) {
				return errSecret
			}
		}
		if at >= out.Size {
			return readAll(out, piece)
		}
		more, err := r.box.ReadFrom(ctx, out.Output, at)
		if err != nil {
			return fmt.Errorf("read what would be pushed: %w", err)
		}
		if len(more) == 0 {
			return fmt.Errorf("read what would be pushed: it ends at byte %d of %d", at, out.Size)
		}
		at += int64(len(more))
		piece = append(bytes.Clone(piece[max(0, len(piece)-overlap):]), more...)
	}
}

// readAll tells whether nothing is missing before the end of what a process
// printed. If Data held all of it, that is known already.
func readAll(out sandbox.Output, end []byte) error {
	if out.Truncated && !bytes.HasSuffix(end, []byte(complete)) {
		return fmt.Errorf("read what would be pushed: %w", errIncomplete)
	}
	return nil
}

// guarded are those of the secrets that a push is searched for. Of a URL that
// is the password: the rest is in many a settings file.
func guarded(secrets []string) []string {
	var out []string
	for _, s := range secrets {
		s = strings.TrimSpace(s)
		if u, err := url.Parse(s); err == nil && (u.Host != "" || u.User != nil) {
			s, _ = u.User.Password()
		}
		if len(s) >= minSecret {
			out = append(out, s)
		}
	}
	return out
}
