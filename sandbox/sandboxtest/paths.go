package sandboxtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"
	"unicode"

	"ship/sandbox"
)

// FuzzPaths fuzzes what people and agents may give as a path: whatever it is, no
// file is written or read, and no process started, outside of a box's two
// folders. In the box that is made, links lead out, and one of them becomes a
// folder and a link again all the time.
func FuzzPaths(f *testing.F, open func(f *testing.F) sandbox.Provider) {
	for _, path := range oddPaths() {
		f.Add(path)
	}
	m := newMaze(f, lastingBox(f, open(f)))
	f.Fuzz(func(t *testing.T, path string) { m.try(t, path) })
}

// lastingBox makes a box that lasts as long as fuzzing may.
func lastingBox(f *testing.F, p sandbox.Provider) sandbox.Box {
	f.Helper()
	info, err := p.Create(f.Context(), sandbox.Spec{Key: f.Name(), Generation: 1, TTL: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := p.Destroy(context.WithoutCancel(f.Context()), info.ID); err != nil {
			f.Error(err)
		}
	})
	box, err := p.Attach(f.Context(), info.ID, 0)
	if err != nil {
		f.Fatal(err)
	}
	return box
}

// oddPaths are the beginning of what is tried.
func oddPaths() []string {
	paths := []string{
		"/work/x", "/work/deep/er/x", "/run/ship/x", "/work", "/run/ship", "/work/in/x", "/work/sub", "/work/loop/x", "/work/pipe",
		"", "/", ".", "..", "x", "work/x", "//work/x", "/work//x", "/work/./x", "/work/x/", "/work/", "/workshop/x", "/run/x", "/run/shipyard/x",
		"/work/..", "/work/../etc/passwd", "/work/sub/../../etc/passwd", "/run/ship/../../etc/passwd", "/work/out/../secret", "/etc/passwd", "/proc/self/root/etc/passwd",
		"/work/out", "/work/out/x", "/work/out/secret", "/work/up/etc/passwd", "/work/sub/up/secret", "/work/file", "/run/ship/out/secret", "/run/ship/file/x",
		"/work/s/swap", "/work/s/swap/x", "/work/s/swap/secret", "/work/s/swap/deep/x",
		"/work/\x00", "/work/x\x00/../../etc/passwd", "/work/\n", "/work/a\nb\r\x1b[31m", "/work/%2e%2e/x", "/work/%00", "/work/a?b#c&path=/etc/passwd", "/work/a b+c;d",
		"/work/\u00e9", "/work/e\u0301", "/work/\u202ecod.exe", "/work/\u2066x\u2069", "/work/\u2025/x", "/work/\uff0e\uff0e/x", "/work\u2215x", "/work/\ufeff",
		"/work/\xc0\xae\xc0\xae/etc/passwd", "/work/\xc0\xaf", "/work/\xe0\x80\xae", "/work/\xff\xfe", "/work/\xed\xa0\x80",
	}
	for _, unit := range []string{"a", "a/", "../", "\u00e9", "\n", "\xff"} {
		paths = append(paths, "/work/"+strings.Repeat(unit, 5000/len(unit)), "/work/"+strings.Repeat(unit, 200/len(unit))+"x")
	}
	return paths
}

// maze is a box with ways out of its folders.
type maze struct {
	box sandbox.Box
	// outside is a folder beside those of the box, and work and run are those as
	// processes see them: elsewhere, where there is no isolation.
	outside, work, run string
	// before is what lies outside.
	before string
	count  int
}

// lay makes the ways out anew.
const lay = `cd /work && find . -mindepth 1 -maxdepth 1 ! -name s -exec rm -rf {} + &&
	mkdir -p sub repo home s && ln -sfn "$OUT" out && ln -sfn ../../../../../../../../../../../.. up && ln -sfn "../../../../../../../../../../../..$OUT" sub/up &&
	ln -sfn "$OUT/secret" file && ln -sfn loop loop && ln -sfn sub in && mkfifo pipe &&
	cd /run/ship && rm -rf out file && ln -sfn "$OUT" out && ln -sfn "$OUT/secret" file`

// peep prints what is outside, by what the shell can do alone: it is run often.
const peep = `cd "$OUT" && echo .* * && read -r line < secret && echo "$line"`

// swap is a link, nothing, a folder, nothing.
const swap = `cd /work/s && while :; do ln -sfn "$OUT" swap; sleep .01; rm -rf swap; mkdir swap; sleep .01; rm -rf swap; done 2>/dev/null`

func newMaze(f *testing.F, box sandbox.Box) *maze {
	f.Helper()
	m := &maze{box: box, outside: "/tmp/ship-paths-" + rand.Text()}
	m.run, m.work = strings.TrimSpace(m.sh(f, sandbox.RunDir, "pwd -P")), strings.TrimSpace(m.sh(f, sandbox.WorkDir, "pwd -P"))
	m.sh(f, sandbox.WorkDir, `mkdir -p "$OUT" && echo secret-of-others > "$OUT/secret"; `+lay)
	m.before = m.sh(f, sandbox.WorkDir, peep)
	if !strings.HasSuffix(m.before, " secret\nsecret-of-others\n") {
		f.Fatalf("the ways out are not laid: %q", m.before)
	}
	if _, err := box.Spawn(f.Context(), m.command(sandbox.WorkDir, swap)); err != nil {
		f.Fatal(err)
	}
	// Without isolation it lies on the machine itself.
	f.Cleanup(func() { m.sh(f, sandbox.WorkDir, `rm -rf "$OUT"`) })
	return m
}

func (m *maze) command(dir, script string) sandbox.Command {
	m.count++
	return sandbox.Command{Name: fmt.Sprint("maze-", m.count), Dir: dir, Env: []string{"OUT=" + m.outside}, Args: []string{"/bin/sh", "-c", script}}
}

// sh runs a script that has to end well.
func (m *maze) sh(tb testing.TB, dir, script string) string {
	tb.Helper()
	out, err := sandbox.Exec(context.WithoutCancel(tb.Context()), m.box, m.command(dir, script))
	if err != nil || out.ExitCode != 0 {
		tb.Fatalf("%s: exit %d, %q, %v", script, out.ExitCode, out.Data, err)
	}
	return string(out.Data)
}

// try writes to a path, reads from it and starts a process there.
func (m *maze) try(t *testing.T, name string) {
	t.Helper()
	wrote := m.box.Write(t.Context(), name, []byte("mine"), 0o644)
	m.judge(t, "Write", name, wrote)
	data, err := m.box.ReadFrom(t.Context(), name, 0)
	m.judge(t, "ReadFrom", name, err)
	moving := strings.HasPrefix(name, "/work/s/")
	if strings.Contains(string(data), "secret-of-others") || wrote == nil && !moving && (err != nil || string(data) != "mine") {
		t.Errorf("ReadFrom(%q) after Write (%v): %q, %v", name, wrote, data, err)
	}
	if now := m.enter(t, name); now != m.before {
		t.Fatalf("%q: outside was\n%s\nand is\n%s", name, m.before, now)
	}
	if wrote == nil && !moving {
		m.sh(t, sandbox.WorkDir, lay)
	}
}

// enter starts a process there, and returns what is outside. Empty is where it
// starts by itself.
func (m *maze) enter(t *testing.T, name string) string {
	t.Helper()
	out, err := sandbox.Exec(t.Context(), m.box, m.command(name, "echo at; pwd -P 2>/dev/null || echo; "+peep))
	m.judge(t, "Spawn", cmp.Or(name, sandbox.WorkDir), err)
	if err != nil {
		return m.sh(t, sandbox.WorkDir, peep)
	}
	_, text, _ := strings.Cut(string(out.Data), "at\n") // the shell may say before that its folder was removed
	where, outside, _ := strings.Cut(text, "\n")
	if where != "" && !inside(m.work, where) && !inside(m.run, where) {
		t.Errorf("Spawn in %q: started in %q", name, where)
	}
	return outside
}

func inside(dir, name string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// judge wants a path outside to be refused, and any refusal to be final, and
// something that can be shown.
func (m *maze) judge(t *testing.T, what, name string, err error) {
	t.Helper()
	within := path.Clean(name) == name && !strings.Contains(name, "\x00") && (inside(sandbox.WorkDir, name) || inside(sandbox.RunDir, name))
	switch {
	case err == nil && !within:
		t.Errorf("%s(%q) was not refused", what, name)
	case err == nil:
	case !within && len(name) < 4096 && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrInvalid):
		t.Errorf("%s(%q): %v, which is no refusal", what, name, err)
	case errors.Is(err, sandbox.ErrTransient) || errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrBusy):
		t.Errorf("%s(%q): %v, as if the box were at fault", what, name, err)
	case len(err.Error()) > 2000 || strings.ContainsFunc(err.Error(), unshowable):
		t.Errorf("%s(%q): an error that cannot be shown: %.3000q", what, name, err.Error())
	}
}

// unshowable are signs that change what is around them, where they are printed.
func unshowable(r rune) bool {
	return r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
