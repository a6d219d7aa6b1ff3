package local

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"ship/sandbox"
)

// home is the folder of one box.
type home string

func (p *Provider) home(id string) home { return home(filepath.Join(p.cfg.Dir, id)) }

func (h home) file(name ...string) string {
	return filepath.Join(append([]string{string(h)}, name...)...)
}
func (h home) socket() string  { return h.file("guest.sock") }
func (h home) log() string     { return h.file("guest.log") }
func (h home) host() string    { return h.file("host") }
func (h home) expires() string { return h.file("host", "expires") }
func (h home) etc() string     { return h.file("etc") }
func (h home) work() string    { return h.file("work") }
func (h home) run() string     { return h.file("run") }

// make makes the folder with what every box has in it.
func (h home) make() error {
	for _, dir := range []string{h.host(), h.etc(), h.work(), h.run()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for name, text := range etcFiles {
		if err := os.WriteFile(filepath.Join(h.etc(), name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// record is what box.json says.
type record struct {
	ID         string            `json:"id"`
	Key        string            `json:"key"`
	Generation int64             `json:"generation"`
	Labels     map[string]string `json:"labels,omitempty"`
	Created    time.Time         `json:"created"`
	Expires    time.Time         `json:"expires"`
	Process    identity          `json:"process"`
	Cgroups    []string          `json:"cgroups,omitempty"`
	// Paused: nothing of it is to run until somebody attaches to it.
	Paused bool `json:"paused,omitempty"`
}

func (r record) info() sandbox.Info {
	state := sandbox.Running
	if r.Paused {
		state = sandbox.Paused
	}
	labels := map[string]string{}
	maps.Copy(labels, r.Labels)
	labels[sandbox.LabelSession] = r.Key
	labels[sandbox.LabelGeneration] = strconv.FormatInt(r.Generation, 10)
	return sandbox.Info{
		ID:         r.ID,
		Key:        r.Key,
		Generation: r.Generation,
		State:      state,
		Labels:     labels,
		Created:    r.Created,
		Expires:    r.Expires,
	}
}

func (h home) load() (record, error) {
	text, err := os.ReadFile(h.file("box.json"))
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return record{}, fmt.Errorf("reading box.json: %w", err)
	}
	return r, nil
}

func (h home) save(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeFile(h.file("box.json"), text)
}

// living returns the record of a box whose guest lives, or that is paused. A
// record that cannot be read is as good as none: whatever it described can be made
// anew.
func (h home) living() (record, bool) {
	r, err := h.load()
	return r, err == nil && (r.Paused || r.Process.alive())
}

// writeFile replaces a file that nobody in a box can reach.
func writeFile(path string, data []byte) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
