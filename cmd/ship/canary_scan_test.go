package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// markers are the secrets that a canary run looks for, by what they are called.
// They are safe for concurrent use: some are minted on the way.
type markers struct {
	mu    sync.Mutex
	known map[string]string
}

// minMarker is how long a marker is at least: a shorter one may be anywhere.
const minMarker = 12

func (m *markers) add(name, secret string) {
	if len(secret) < minMarker {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[string]string{}
	}
	if !slices.Contains(m.names(secret), name) {
		m.known[fmt.Sprintf("%s#%d", name, len(m.known))] = secret
	}
}

// names are those of a secret; the lock is held.
func (m *markers) names(secret string) (names []string) {
	for name, known := range m.known {
		if known == secret {
			names = append(names, name[:strings.IndexByte(name, '#')])
		}
	}
	return names
}

// addLines adds some lines of a secret that has many: what shows one of them
// shows too much.
func (m *markers) addLines(name, secret string) {
	lines := strings.Split(strings.TrimSpace(secret), "\n")
	for _, i := range []int{1, len(lines) / 2, len(lines) - 2} {
		m.add(name, strings.TrimSpace(lines[i]))
	}
}

// values lists the secrets.
func (m *markers) values() (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.known {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

// in tells which markers a text holds, as they are or written otherwise, each
// with what is around it.
func (m *markers) in(text []byte) (found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lower := bytes.ToLower(text)
	for name, secret := range m.known {
		for way, form := range forms(secret) {
			at := bytes.Index(text, []byte(form))
			if at < 0 && way == "hex" {
				at = bytes.Index(lower, []byte(form))
			}
			if at >= 0 {
				found = append(found, fmt.Sprintf("%s, as %s: %q", name, way, text[max(0, at-150):min(len(text), at+len(form)+50)]))
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// forms are the ways in which a secret may be written. In base64 it may begin
// at any of three places, and the characters at its ends depend on what is
// beside it.
func forms(secret string) map[string]string {
	out := map[string]string{
		"it is": secret, "hex": hex.EncodeToString([]byte(secret)), "a URL": url.QueryEscape(secret),
		"a cut text": secret[:len(secret)*3/4],
	}
	for shift := range 3 {
		whole := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + secret))
		from := (shift*8 + 5) / 6
		out[fmt.Sprint("base64 ", shift)] = whole[from : len(whole)-1]
		out[fmt.Sprint("URL base64 ", shift)] = strings.NewReplacer("+", "-", "/", "_").Replace(whole[from : len(whole)-1])
	}
	return out
}

// sink collects what may not hold a marker, by where it was found.
type sink struct {
	t       testing.TB
	markers *markers
	mu      sync.Mutex
	texts   map[string]*bytes.Buffer
}

// take collects a text; what was taken before under the same name stays.
func (s *sink) take(where string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts == nil {
		s.texts = map[string]*bytes.Buffer{}
	}
	if s.texts[where] == nil {
		s.texts[where] = new(bytes.Buffer)
	}
	s.texts[where].Write(text)
	s.texts[where].WriteByte('\n')
}

// takeFolder collects all files below a folder, but for those that are named,
// with the names of all. Sockets and what vanishes meanwhile are left out.
func (s *sink) takeFolder(where, root string, without ...string) {
	s.t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || slices.Contains(without, path) {
			return nil
		}
		s.take(where, []byte(path))
		if !d.Type().IsRegular() {
			return nil
		}
		if text, err := os.ReadFile(path); err == nil {
			s.take(where, text)
		}
		return nil
	})
	if err != nil {
		s.t.Error(err)
	}
}

// check reports every marker in what was taken, and what was to be taken and
// holds nothing.
func (s *sink) check(wanted ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for where, text := range s.texts {
		for _, found := range s.markers.in(text.Bytes()) {
			s.t.Errorf("%s holds %s", where, found)
		}
	}
	for _, where := range wanted {
		if s.texts[where] == nil || s.texts[where].Len() < 2 {
			s.t.Errorf("%s was not looked at", where)
		}
	}
}

// TestMarkersAreSeen: the search finds a marker however it is written, and
// nothing where there is none.
func TestMarkersAreSeen(t *testing.T) {
	t.Parallel()
	const secret = "canary/of+the?tests_0123456789"
	var m markers
	m.add("it", secret)
	m.add("short", "abc")
	for name, text := range map[string]string{
		"plain":           "so: " + secret + ".",
		"cut":             secret[:len(secret)-4] + "…",
		"hex":             hex.EncodeToString([]byte("x" + secret)),
		"upper hex":       strings.ToUpper(hex.EncodeToString([]byte("x" + secret))),
		"query":           "?a=" + url.QueryEscape(secret),
		"base64":          base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 after 1":  base64.StdEncoding.EncodeToString([]byte("u" + secret + "more")),
		"base64 after 2":  base64.StdEncoding.EncodeToString([]byte("u:" + secret + ":x")),
		"url base64":      base64.RawURLEncoding.EncodeToString([]byte("user" + secret + "!")),
		"behind anything": strings.Repeat("\xff\x00", 1000) + secret,
	} {
		if len(m.in([]byte(text))) == 0 {
			t.Errorf("%s: it is not seen in %q", name, text)
		}
	}
	for _, text := range []string{"", "abc", "canary", secret[5:], "nothing to see"} {
		if found := m.in([]byte(text)); len(found) > 0 {
			t.Errorf("%q holds %v", text, found)
		}
	}
}
