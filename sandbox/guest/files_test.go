package guest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/sandbox"
)

// trapped are files with ways out of them: links that lead to a folder and to a
// file beside them.
func trapped(tb testing.TB) (f *files, outside string) {
	tb.Helper()
	dir := tb.TempDir()
	outside = filepath.Join(dir, "outside")
	for _, name := range []string{"work/sub", "run", "outside"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"work/abs": outside, "work/rel": "../outside", "work/up": "..", "work/sub/up": "../..",
		"run/file": filepath.Join(outside, "secret"), "work/loop": "loop", "work/in": "sub",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		tb.Fatal(err)
	}
	f, err := openFiles(filepath.Join(dir, "work"), filepath.Join(dir, "run"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _, _ = f.work.Close(), f.run.Close() })
	return f, outside
}

// snapshot is everything beside the box's folders.
func snapshot(tb testing.TB, outside string) string {
	tb.Helper()
	var b strings.Builder
	dir := filepath.Dir(outside)
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, entry := range entries {
		b.WriteString(entry.Name() + "\n")
	}
	err = filepath.WalkDir(outside, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(path + "\n")
		if entry.Type().IsRegular() {
			text, err := os.ReadFile(path)
			b.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func TestConfined(t *testing.T) {
	t.Parallel()
	f, outside := trapped(t)
	before := snapshot(t, outside)
	for _, path := range []string{
		"/work/abs/x", "/work/rel/x", "/work/up/x", "/work/up/outside/x", "/work/sub/up/outside/x",
		"/work/../outside/x", "/work/loop/x", "/run/ship/../../outside/x", "/outside/x", "", "/", "x",
	} {
		if err := f.write(path, strings.NewReader("bad"), 0o644); err == nil {
			t.Errorf("write(%q) was not refused", path)
		}
		if data, err := f.read(strings.TrimSuffix(path, "x")+"secret", 0); err == nil {
			t.Errorf("read(%q) was not refused: %q", path, data)
		}
	}
	if data, err := f.read("/run/ship/file", 0); err == nil {
		t.Errorf("a link was followed: %q", data)
	}
	if after := snapshot(t, outside); after != before {
		t.Errorf("outside was\n%s\nis\n%s", before, after)
	}
	// A link that stays inside is as good as any folder.
	if err := f.write("/work/in/x", strings.NewReader("good"), 0o644); err != nil {
		t.Errorf("write through a link that stays inside: %v", err)
	}
	if data, err := f.read("/work/sub/x", 0); err != nil || string(data) != "good" {
		t.Errorf("%q, %v", data, err)
	}
}

// FuzzConfined: no name leads out.
func FuzzConfined(f *testing.F) {
	for _, path := range []string{
		"/work/x", "/work/abs/x", "/work/../outside/secret", "/run/ship/file", "/work/rel/secret", "/work/sub/up/outside/y",
		"/work/in/../abs/z", "/work//abs/x", "/work/abs\x00/x", "/work/.", "/work/up", "/run/ship/../../outside/secret", "/work/\xff",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		files, outside := trapped(t)
		before := snapshot(t, outside)
		wrote := files.write(path, strings.NewReader("mine"), 0o644) == nil
		data, err := files.read(path, 0)
		if bytes.Contains(data, []byte("secret")) {
			t.Errorf("read(%q) = %q", path, data)
		}
		if wrote && (err != nil || string(data) != "mine") {
			t.Errorf("what was written to %q reads as %q, %v", path, data, err)
		}
		if wrote && !strings.HasPrefix(path, sandbox.WorkDir+"/") && !strings.HasPrefix(path, sandbox.RunDir+"/") {
			t.Errorf("write(%q) was not refused", path)
		}
		if after := snapshot(t, outside); after != before {
			t.Errorf("write(%q): outside was\n%s\nis\n%s", path, before, after)
		}
	})
}

// TestWriteLeavesNothing: a write that fails leaves no half file.
func TestWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	f, _ := trapped(t)
	if err := f.write("/work/sub", strings.NewReader("x"), 0o644); err == nil {
		t.Error("a folder was replaced")
	}
	if err := f.write("/work/x", failing{}, 0o644); err == nil {
		t.Error("a body that fails was taken")
	}
	entries, err := os.ReadDir(f.work.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".ship-") || entry.Name() == "x" {
			t.Errorf("left behind: %s", entry.Name())
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, fs.ErrClosed }

func TestOutside(t *testing.T) {
	t.Parallel()
	f, err := newPlaces(Config{
		Work: "/data/work/b1/work", Run: "/data/work/b1/run",
		Shown: []string{"/opt/ship/opencode=/usr/lib/opencode", "/opt/same=/opt/same"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for give, want := range map[string]string{
		"/work":                     "/data/work/b1/work",
		"/work/repo":                "/data/work/b1/work/repo",
		"A=/work/x:/run/ship/token": "A=/data/work/b1/work/x:/data/work/b1/run/token",
		"cd /work && ls":            "cd /data/work/b1/work && ls",
		`"/work"`:                   `"/data/work/b1/work"`,
		"/work/work":                "/data/work/b1/work/work",
		"/work//work":               "/data/work/b1/work//work",
		"/workshop":                 "/workshop",
		"/work-1":                   "/work-1",
		"/home/work":                "/home/work",
		"a/work":                    "a/work",
		"../work":                   "../work",
		"/run/shipyard":             "/run/shipyard",
		"/run":                      "/run",
		"http://host/work":          "http://host/work",
		"/opt/ship/opencode":        "/usr/lib/opencode",
		"/opt/ship/opencode.json":   "/opt/ship/opencode.json",
		"/opt/same/x":               "/opt/same/x",
		"":                          "",
	} {
		if got := f.outside(give); got != want {
			t.Errorf("outside(%q) = %q, want %q", give, got, want)
		}
	}
	inside, err := newPlaces(Config{Work: sandbox.WorkDir, Run: sandbox.RunDir})
	if err != nil || len(inside) != 0 || inside.outside("/work/x") != "/work/x" {
		t.Errorf("with isolation: %v, %v", inside, err)
	}
	for _, pair := range []string{"", "/x", "x=/y", "/x=y"} {
		if got, err := newPlaces(Config{Work: "/w", Run: "/r", Shown: []string{pair}}); err == nil {
			t.Errorf("%q: %v", pair, got)
		}
	}
}

// FuzzOutside: what names none of the folders stays, byte by byte.
func FuzzOutside(f *testing.F) {
	f.Add("cd /work/repo; cat /run/ship/token")
	f.Add("/workshop /home/work ../work")
	f.Fuzz(func(t *testing.T, text string) {
		places := places{{sandbox.WorkDir, "/W"}, {sandbox.RunDir, "/R"}}
		got := places.outside(text)
		back := strings.NewReplacer("/W", "/work", "/R", "/run/ship")
		if !strings.Contains(text, "/W") && !strings.Contains(text, "/R") && back.Replace(got) != text {
			t.Errorf("outside(%q) = %q", text, got)
		}
	})
}

func FuzzName(f *testing.F) {
	for _, name := range []string{"a", "..", "a/b", "", ".", "a\n", "Ä", "turn-1.agent_2"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if validName(name) == nil && filepath.Base(filepath.Join("/proc", name)) != name {
			t.Errorf("%q is no name of a folder", name)
		}
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (a) b) S 1 7 7 0 -1")
	f.Add("7 (")
	f.Fuzz(func(t *testing.T, line string) {
		if s, ok := parseStat(line); ok && !strings.ContainsRune(line, rune(s.state)) {
			t.Errorf("parseStat(%q) = %+v", line, s)
		}
	})
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	got, ok := parseStat("7 (a) R 1 (b) S 3 4 5 0 -1 4194560")
	if want := (stat{pid: 7, parent: 3, group: 4, session: 5, state: 'S'}); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, line := range []string{"", "7", "7 (x", "x (y) S 1 2 3", "7 (x) S 1", "7 ) ( S 1 2 3"} {
		if got, ok := parseStat(line); ok {
			t.Errorf("parseStat(%q) = %+v", line, got)
		}
	}
}

func FuzzParseExpiry(f *testing.F) {
	f.Add(FormatExpiry(time.Unix(1, 5)))
	f.Add([]byte("tomorrow"))
	f.Fuzz(func(t *testing.T, text []byte) {
		at, err := parseExpiry(text)
		if err != nil || at.UTC().Year() < 0 || at.UTC().Year() > 9999 {
			return
		}
		again, err := parseExpiry(FormatExpiry(at))
		if err != nil || !again.Equal(at) {
			t.Errorf("%q: %s, then %s, %v", text, at, again, err)
		}
	})
}

func TestLastOfEach(t *testing.T) {
	t.Parallel()
	got := strings.Join(lastOfEach([]string{"A=1", "B=2", "A=3", "C=", "B=4"}), " ")
	if want := "A=3 C= B=4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
