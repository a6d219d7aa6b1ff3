package e2btest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// box is a machine of the stand-in. What it is is guarded by the server's lock;
// its processes live on their own.
type box struct {
	id, dir            string
	order              Order
	started, ends      time.Time
	envdToken, traffic string
	paused, frozen     bool
	// life is a pipe that the daemon reads: it ends with it, at any time.
	life   *os.File
	exited chan struct{}
	proxy  *httputil.ReverseProxy
	door   string
	disk   int64
}

func (b *box) state() string {
	if b.paused {
		return "paused"
	}
	return "running"
}

func (b *box) file(name string) string { return filepath.Join(b.dir, name) }

// make makes a box and starts it. The lock is held.
func (s *Server) make(o Order) (*box, error) {
	b := &box{id: newID(), order: o, disk: s.options.Disk, envdToken: "ea_" + rand.Text(), traffic: "ta_" + rand.Text()}
	b.dir = filepath.Join(s.dir, b.id)
	left := 15 * time.Second
	if o.Timeout != nil {
		left = time.Duration(*o.Timeout) * time.Second
	}
	for _, name := range []string{"work", "opt", "etc"} {
		if err := os.MkdirAll(b.file(name), 0o755); err != nil {
			return nil, err
		}
	}
	for _, name := range s.tools {
		if err := os.Symlink("/sbin-envd", filepath.Join(b.file("opt"), name)); err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/:/bin/sh\n" + User + ":x:1000:1000::/work/home:/bin/sh\n",
		"group":  User + ":x:1000:\n",
		"hosts":  "127.0.0.1 localhost\n", "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	} {
		if err := os.WriteFile(filepath.Join(b.file("etc"), name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	if slices.Contains(o.Network.AllowOut, Allowed) {
		b.door = s.door
	}
	if err := b.boot(); err != nil {
		return nil, err
	}
	b.started = time.Now()
	b.ends = b.started.Add(left)
	s.boxes[b.id] = b
	return b, nil
}

// boot starts the daemon as the first process of new namespaces. /run is empty
// then, as after any start of a machine.
func (b *box) boot() error {
	if err := errors.Join(os.RemoveAll(b.file("run")), os.MkdirAll(b.file("run"), 0o755)); err != nil {
		return err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: b.file("sock")})
	if err != nil {
		return fmt.Errorf("making a box: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	defer func() { _ = listener.Close() }()
	socket, err := listener.File()
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }()
	cmd, err := b.command()
	if err != nil {
		return err
	}
	alive, life, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = alive.Close() }()
	cmd.ExtraFiles = []*os.File{socket, alive}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("starting a box: %w", err), life.Close())
	}
	b.life, b.exited = life, make(chan struct{})
	go func() { _ = cmd.Wait(); close(b.exited) }()
	b.proxy = b.newProxy()
	return nil
}

func (b *box) command() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{
		"--unshare-all", "--unshare-user", "--as-pid-1", "--new-session",
		"--uid", "1000", "--gid", "1000", "--clearenv", "--chdir", "/", "--ro-bind", "/usr", "/usr",
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else {
			args = append(args, "--ro-bind-try", dir, dir)
		}
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", b.file("etc"), "/etc",
		"--bind", b.file("work"), "/work", "--bind", b.file("run"), "/run/ship", "--bind", b.file("opt"), "/opt/ship",
		"--ro-bind", self, "/sbin-envd")
	if b.disk > 0 { // over what is bound there
		args = append(args, "--size", strconv.FormatInt(b.disk, 10), "--tmpfs", "/work")
	}
	if b.door != "" {
		args = append(args, "--ro-bind", b.door, "/door")
	}
	cmd := exec.Command("bwrap", append(args, "--", "/sbin-envd", Role)...)
	cmd.Env = []string{}
	return cmd, nil
}

// newProxy leads to the daemon, which passes on what is for other ports.
func (b *box) newProxy() *httputil.ReverseProxy {
	socket := b.file("sock")
	return &httputil.ReverseProxy{
		Transport:     &http.Transport{DialContext: dialUnix(socket), DisableKeepAlives: true, DisableCompression: true},
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "box"
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { notFound(w, b.id) },
		ErrorLog:     discard,
	}
}

// halt ends all processes of the box.
func (b *box) halt() {
	if b.life != nil {
		_ = b.life.Close()
		<-b.exited
	}
	_ = os.Remove(b.file("sock"))
	b.life = nil
}

// remove ends a box and its files.
func (b *box) remove() {
	b.halt()
	// The namespace's last processes may still be on their way out.
	for range 100 {
		_ = filepath.WalkDir(b.dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		if os.RemoveAll(b.dir) == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// pause keeps the files, and with memory also the processes, which stand still.
func (b *box) pause(memory bool) error {
	b.paused, b.frozen = true, memory
	if !memory {
		b.halt()
		return nil
	}
	return b.tell("/freeze")
}

func (b *box) resume(*Server) error {
	var err error
	if b.frozen {
		err = b.tell("/thaw")
	} else {
		err = b.boot()
	}
	b.paused, b.frozen = err != nil, false
	return err
}

// tell asks the daemon for what only the machine below it could do.
func (b *box) tell(path string) error {
	client := http.Client{Transport: &http.Transport{DialContext: dialUnix(b.file("sock")), DisableKeepAlives: true}}
	response, err := client.Post("http://"+machineHost+path, "", nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func (b *box) keep() error {
	_ = os.RemoveAll(b.file("kept"))
	return exec.Command("cp", "-a", b.file("work"), b.file("kept")).Run()
}

func (b *box) rewind() error {
	if err := os.RemoveAll(b.file("work")); err != nil {
		return err
	}
	return exec.Command("cp", "-a", b.file("kept"), b.file("work")).Run()
}
