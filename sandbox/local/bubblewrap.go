package local

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"ship/sandbox"
)

// Where a box finds what does not belong to it.
const (
	brokerDir = "/run/ship-broker"
	guestPath = "/opt/ship/ship"
	// hostDir holds what ship tells the guest. It lies inside of a folder that
	// the box may write, but is itself read-only.
	hostDir = sandbox.RunDir + "/host"
)

// boxUser is who everything in a box runs as, as the box sees it. Outside it is
// the user who runs ship, without any capability.
const boxUser = "1000"

// etcFiles are the files of /etc that a box has its own of.
var etcFiles = map[string]string{
	"passwd":        "ship:x:" + boxUser + ":" + boxUser + "::" + sandbox.HomeDir + ":/bin/sh\n",
	"group":         "ship:x:" + boxUser + ":\n",
	"hosts":         "127.0.0.1 localhost\n::1 localhost\n",
	"hostname":      "ship\n",
	"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}

// etcShared are the parts of this machine's /etc that a box may read: what the
// programs in /usr need to run. Nothing that can hold a secret, and no folder
// that has a part for private keys.
var etcShared = []string{
	"alternatives", "ca-certificates.conf", "fonts", "ld.so.cache", "ld.so.conf",
	"ld.so.conf.d", "localtime", "magic", "mime.types", "os-release", "protocols",
	"services", "terminfo", "ssl/certs", "ssl/openssl.cnf", "pki/ca-trust",
	"pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "java-*",
}

// procHidden are files of /proc that tell about the whole machine what is none
// of a box's business.
var procHidden = []string{"kcore", "keys", "key-users", "timer_list", "kallsyms", "kmsg", "sched_debug", "latency_stats"}

// bubblewrap makes namespaces with bwrap(1), as root or as anybody.
type bubblewrap struct {
	cfg Config
	// checked is the result of a check that went well.
	checked atomic.Pointer[ability]
}

// ability is what bwrap can do here.
type ability struct {
	path string
	// sealed: it can forbid the box to make further user namespaces.
	sealed bool
}

func (w *bubblewrap) check(ctx context.Context) error {
	if w.checked.Load() != nil {
		return nil
	}
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return fmt.Errorf("%w: bubblewrap is not installed; %s", sandbox.ErrIsolation, remedyInstall)
	}
	can := ability{path: path, sealed: true}
	if err = w.try(ctx, can); err != nil && ctx.Err() == nil {
		can.sealed = false
		err = w.try(ctx, can)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("checking the isolation: %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("%w: %w; %s", sandbox.ErrIsolation, err, remedy())
	}
	if w.checked.CompareAndSwap(nil, &can) && !can.sealed {
		w.cfg.Logger.Warn("boxes may make user namespaces: this bubblewrap cannot forbid it")
	}
	return nil
}

// try starts a guest that leaves at once, in a box as they will all be.
func (w *bubblewrap) try(ctx context.Context, can ability) error {
	// Nothing is written to it, so several may try at once.
	h := home(filepath.Join(w.cfg.Dir, "check"))
	if err := h.make(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, can.path, append(w.args(h, can), "--", guestPath, "guest", "-check")...)
	cmd.Env, cmd.Dir = []string{}, "/"
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w (%s)", can.path, err, cmp.Or(strings.TrimSpace(said.String()), "it said nothing"))
	}
	return nil
}

const (
	remedyInstall = "install it (apt-get install bubblewrap), or, " + remedyNone
	remedyNone    = "if this whole machine or container is a sandbox already, set sandbox.local.isolation to none: then the agent can do and read whatever the user that runs ship can"
)

// remedy says what to do when bwrap is there and does not work.
func remedy() string {
	switch {
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor keeps user namespaces from programs without a profile (Ubuntu 24.04 and later): add a profile for bwrap that allows userns, or set kernel.apparmor_restrict_unprivileged_userns=0; or, " + remedyNone
	case setting("kernel/unprivileged_userns_clone") == "0":
		return "set kernel.unprivileged_userns_clone=1; or, " + remedyNone
	case setting("user/max_user_namespaces") == "0":
		return "set user.max_user_namespaces to more than 0; or, " + remedyNone
	}
	return "user namespaces have to be allowed here (in a container: by its seccomp profile); or, " + remedyNone
}

func setting(name string) string {
	text, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(text))
}

func (w *bubblewrap) command(h home, id string) (*exec.Cmd, bool) {
	can := w.checked.Load()
	args := append([]string{"--info-fd", "4"}, w.args(h, *can)...)
	args = append(args, "--", guestPath, "guest", "-handshake", "-box", id,
		"-listen", "fd:3", "-expires", hostDir+"/expires")
	if w.cfg.Broker != "" {
		args = append(args, "-broker", "unix:"+brokerDir+"/broker.sock")
	}
	cmd := exec.Command(can.path, args...)
	cmd.Env = []string{}
	return cmd, true
}

// args are bwrap's arguments up to the program. Their order matters: what is
// mounted later lies on top.
func (w *bubblewrap) args(h home, can ability) []string {
	args := []string{
		"--unshare-all", "--unshare-user", "--as-pid-1", "--new-session",
		"--cap-drop", "ALL", "--uid", boxUser, "--gid", boxUser, "--hostname", "ship",
		"--clearenv", "--setenv", "PATH", w.cfg.Path, "--chdir", "/",
	}
	if can.sealed {
		args = append(args, "--disable-userns")
	}
	args = append(args, systemArgs()...)
	args = append(args, procArgs()...)
	args = append(args, devArgs()...)
	args = append(args, etcArgs(h)...)
	args = append(args, "--perms", "1777", "--size", w.tmpSize(), "--tmpfs", "/tmp")
	args = append(args, "--bind", h.work(), sandbox.WorkDir, "--bind", h.run(), sandbox.RunDir)
	args = append(args, "--ro-bind", h.host(), hostDir, "--ro-bind", w.cfg.Guest, guestPath)
	if w.cfg.Broker != "" {
		args = append(args, "--ro-bind", w.cfg.Broker, brokerDir)
	}
	for _, bind := range w.cfg.Binds {
		args = append(args, "--ro-bind", bind.Host, bind.Box)
	}
	return append(args, "--remount-ro", "/")
}

// tmpSize bounds /tmp, which is memory, in bytes.
func (w *bubblewrap) tmpSize() string {
	const most = 1 << 30
	if half := w.cfg.Limits.Memory / 2; half > 0 {
		return strconv.FormatInt(min(half, most), 10)
	}
	return strconv.Itoa(most)
}

// systemArgs show the programs of this machine, read-only.
func systemArgs() []string {
	args := []string{"--ro-bind", "/usr", "/usr"}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else if info.IsDir() {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	return args
}

// procArgs show the box its own processes, and keep it from writing what is
// the same for all: a box of root's is, in the kernel's eyes, root without
// capabilities, and may write what belongs to root. Among that is the program
// that every core dump of the machine is handed to.
func procArgs() []string {
	args := []string{"--proc", "/proc"}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		path := "/proc/" + entry.Name()
		info, err := os.Lstat(path)
		if _, isPID := strconv.Atoi(entry.Name()); err != nil || isPID == nil {
			continue
		}
		writable := info.Mode().IsRegular() && info.Mode().Perm()&0o222 != 0
		switch {
		case slices.Contains(procHidden, entry.Name()):
			args = append(args, "--ro-bind", os.DevNull, path)
		case info.IsDir() || writable:
			args = append(args, "--ro-bind", path, path)
		}
	}
	return args
}

// devArgs keep /dev from being a place to write to but for /dev/shm, which is
// bounded.
func devArgs() []string {
	return []string{"--dev", "/dev", "--perms", "1777", "--size", strconv.Itoa(64 << 20),
		"--tmpfs", "/dev/shm", "--remount-ro", "/dev"}
}

func etcArgs(h home) []string {
	var args []string
	for name := range etcFiles {
		args = append(args, "--ro-bind", filepath.Join(h.etc(), name), "/etc/"+name)
	}
	for _, pattern := range etcShared {
		paths, _ := filepath.Glob("/etc/" + pattern)
		for _, path := range paths {
			args = append(args, "--ro-bind-try", path, path)
		}
	}
	return args
}

// parseInfo reads what bwrap writes to --info-fd.
func parseInfo(text []byte) (pid int, err error) {
	var info struct {
		ChildPID int `json:"child-pid"`
	}
	if len(text) == 0 {
		return 0, errors.New("bubblewrap ended at once")
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return 0, fmt.Errorf("reading what bubblewrap says: %w", err)
	}
	if info.ChildPID <= 1 {
		return 0, fmt.Errorf("bubblewrap started process %d", info.ChildPID)
	}
	return info.ChildPID, nil
}
