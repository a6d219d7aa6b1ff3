package guest_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"ship/sandbox"
)

// TestRefusalArrives: a refusal is that also for who has much to say, and never
// looks as if the way to the box had failed, at which one would try again.
func TestRefusalArrives(t *testing.T) {
	t.Parallel()
	b := start(t)
	big := bytes.Repeat([]byte("big"), 1<<20)
	for range 5 {
		if err := b.Write(t.Context(), "/etc/x", big, 0o644); !errors.Is(err, fs.ErrPermission) {
			t.Fatalf("Write: %v", err)
		}
		_, err := b.Spawn(t.Context(), sandbox.Command{Name: "x", Args: []string{"cat"}, Dir: "/etc", Stdin: big})
		if !errors.Is(err, fs.ErrPermission) {
			t.Fatalf("Spawn: %v", err)
		}
	}
	if err := b.Write(t.Context(), "/work/x", make([]byte, 64<<20+1), 0o644); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a file that is too large: %v", err)
	}
	long := "/work/" + strings.Repeat("a/", 2500)
	for what, err := range map[string]error{
		"Write": b.Write(t.Context(), long, nil, 0o644),
		"ReadFrom": func() error {
			_, err := b.ReadFrom(t.Context(), long, 0)
			return err
		}(),
		"Spawn": func() error {
			_, err := b.Spawn(t.Context(), sandbox.Command{Name: "x", Args: []string{"true"}, Dir: long})
			return err
		}(),
		"Spawn in no text": func() error {
			_, err := b.Spawn(t.Context(), sandbox.Command{Name: "x", Args: []string{"true"}, Dir: "/work/\xff"})
			return err
		}(),
	} {
		if !errors.Is(err, fs.ErrInvalid) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNoSuchName: what cannot be the name of a process is that of none, and asks
// for nothing else.
func TestNoSuchName(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, name := range []string{"", ".", "..", "../file", "a/b", "a?b", "\x00", strings.Repeat("a", 129)} {
		if _, err := b.Process(t.Context(), name); !errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrTransient) {
			t.Errorf("Process(%q): %v", name, err)
		}
		if err := b.Kill(t.Context(), name, time.Second); !errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrTransient) {
			t.Errorf("Kill(%q): %v", name, err)
		}
	}
}

// TestRepositoryThatLeadsOut: where a process starts by itself is in the box's
// folders, also when somebody has made a link of the repository.
func TestRepositoryThatLeadsOut(t *testing.T) {
	t.Parallel()
	b := start(t)
	if err := os.Symlink("/etc", b.file("work/repo")); err != nil {
		t.Fatal(err)
	}
	if out := b.shell(t, "where", "pwd -P"); strings.TrimSpace(string(out.Data)) != b.file("work") {
		t.Errorf("it starts in %q", out.Data)
	}
	_, err := b.Spawn(t.Context(), sandbox.Command{Name: "in", Args: []string{"true"}, Dir: sandbox.RepoDir})
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("started there: %v", err)
	}
}
