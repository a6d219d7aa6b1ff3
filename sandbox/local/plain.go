package local

import (
	"cmp"
	"context"
	"os/exec"
)

// plain is the wrapper that isolates nothing. The guest stands in for what is
// not mounted: it rewrites the box's paths into those of its folder.
type plain struct {
	cfg Config
	// bridge is where the guest offers the broker; empty is the usual place.
	// There is only one on a machine, which is why there is only one box.
	bridge string
}

func (*plain) check(context.Context) error { return nil }

func (w *plain) command(h home, id string) (*exec.Cmd, bool) {
	args := []string{"guest", "-handshake", "-box", id, "-listen", "fd:3",
		"-work", h.work(), "-run", h.run(), "-expires", h.expires(),
		"-bridge", cmp.Or(w.bridge, "127.0.0.1:4010")}
	if w.cfg.Broker != "" {
		args = append(args, "-broker", "unix:"+w.cfg.Broker+"/broker.sock")
	}
	for _, bind := range w.cfg.Binds {
		args = append(args, "-show", bind.Box+"="+bind.Host)
	}
	cmd := exec.Command(w.cfg.Guest, args...)
	cmd.Env = []string{"PATH=" + w.cfg.Path}
	return cmd, false
}
