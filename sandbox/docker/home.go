package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"ship/sandbox"
	"ship/sandbox/folder"
	"ship/sandbox/guest"
)

// name is that of the container of a key.
func (p *Provider) name(key string) string { return "ship-" + p.gateway + "-" + folder.HashKey(key) }

// What is in the folder of a box.
const (
	workName   = "work"
	runName    = "run"
	doorFolder = "door"
	hostName   = "host"
	etcName    = "etc"
	doorName   = "guest.sock"
	recordName = "box.json"
)

// etcNames are the files of /etc that a box has its own of. Programs ask who
// they run as, and the image does not know that user.
var etcNames = []string{"passwd", "group"}

// home is the folder of one box.
type home string

func (p *Provider) home(id string) home { return home(filepath.Join(p.cfg.Dir, id)) }

func (h home) file(name ...string) string {
	return filepath.Join(append([]string{string(h)}, name...)...)
}

// make makes the folder, and gives what the box may write to the box's user.
func (h home) make(r record, can ability) error {
	for _, name := range []string{hostName, etcName} {
		if err := os.MkdirAll(h.file(name), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{workName, runName, doorFolder} {
		if err := h.makeShared(name, can); err != nil {
			return err
		}
	}
	user := can.user()
	passwd := "ship:x:" + user + "::" + sandbox.HomeDir + ":/bin/sh\n"
	group := "ship:x:" + strconv.Itoa(can.gid) + ":\n"
	return errors.Join(
		writeFile(h.file(etcName, etcNames[0]), []byte(passwd), 0o644),
		writeFile(h.file(etcName, etcNames[1]), []byte(group), 0o644),
		h.promise(r.Expires),
		h.save(r))
}

// makeShared makes a folder that the box writes to. Only root can give it away,
// and only root has to: everybody else is the box's user, or stands for it.
func (h home) makeShared(name string, can ability) error {
	if err := os.MkdirAll(h.file(name), 0o755); err != nil {
		return err
	}
	if os.Getuid() != 0 || can.uid == 0 {
		return nil
	}
	return os.Chown(h.file(name), can.uid, can.gid)
}

// promise tells the guest when the box ends.
func (h home) promise(expires time.Time) error {
	return writeFile(h.file(hostName, "expires"), guest.FormatExpiry(expires), 0o644)
}

// record is what box.json says.
type record struct {
	ID         string            `json:"id"`
	Key        string            `json:"key"`
	Generation int64             `json:"generation"`
	Labels     map[string]string `json:"labels,omitempty"`
	Created    time.Time         `json:"created"`
	Expires    time.Time         `json:"expires"`
	// Secret is the guest's.
	Secret string `json:"secret"`
	// Paused: if its container does not run, that is our doing.
	Paused bool `json:"paused,omitempty"`
}

func (r record) info(state sandbox.State) sandbox.Info {
	labels := map[string]string{}
	maps.Copy(labels, r.Labels)
	labels[sandbox.LabelSession] = r.Key
	labels[sandbox.LabelGeneration] = strconv.FormatInt(r.Generation, 10)
	return sandbox.Info{
		ID: r.ID, Key: r.Key, Generation: r.Generation, State: state,
		Labels: labels, Created: r.Created, Expires: r.Expires,
	}
}

// load returns ErrGone when there is no record: without it nobody can reach the
// box, and whatever it described can be made anew.
func (h home) load() (record, error) {
	text, err := os.ReadFile(h.file(recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, sandbox.ErrGone
	}
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return record{}, fmt.Errorf("reading %s: %w (%w)", recordName, err, sandbox.ErrGone)
	}
	return r, nil
}

func (h home) save(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeFile(h.file(recordName), text, 0o600)
}

// lock keeps everybody else, in any process, from changing a box. It is held on
// the folder itself, which is never made again once it is gone.
func (h home) lock(ctx context.Context) (unlock func(), err error) {
	return folder.Await(ctx, func() (unlock func(), err error) {
		dir, err := os.Open(string(h))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, sandbox.ErrGone
		}
		if err != nil {
			return nil, err
		}
		return folder.TryLock(dir)
	})
}

// bury removes the folder. May be called again.
func (h home) bury() error {
	grave, err := folder.Bury(string(h))
	if err != nil {
		return err
	}
	return folder.Remove(grave)
}

// writeFile replaces a file that nobody in a box can reach. If the box has gone
// meanwhile, it says so.
func writeFile(path string, data []byte, mode fs.FileMode) error {
	temp := path + ".new"
	err := os.WriteFile(temp, data, mode)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w (%w)", err, sandbox.ErrGone)
	}
	return err
}
