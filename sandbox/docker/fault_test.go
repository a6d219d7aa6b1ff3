package docker_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/moby/api/types/system"

	"ship/sandbox"
	"ship/sandbox/docker"
	"ship/sandbox/docker/dockertest"
	"ship/sandbox/sandboxtest"
)

// TestCheck: what a person has to mend is said, with what to do.
func TestCheck(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	plain := func(*system.Info) {}
	for _, c := range []struct {
		name   string
		set    func(*docker.Settings)
		inform func(*system.Info)
		want   error
		words  []string
	}{
		{"good", func(*docker.Settings) {}, plain, nil, nil},
		{"image", func(s *docker.Settings) { s.Image = "nowhere" }, plain, sandbox.ErrIsolation, []string{"docker pull nowhere", "sandbox.docker.image"}},
		{"runtime", func(s *docker.Settings) { s.Runtime = "runsc" }, plain, sandbox.ErrIsolation, []string{"runsc", "daemon.json"}},
		{"users", func(*docker.Settings) {}, func(i *system.Info) { i.SecurityOptions = []string{"name=userns"} }, sandbox.ErrIsolation, []string{"userns-remap"}},
		{"windows", func(*docker.Settings) {}, func(i *system.Info) { i.OSType = "windows" }, sandbox.ErrIsolation, []string{"windows"}},
		{"away", func(s *docker.Settings) { s.Host = "unix:///nowhere.sock" }, plain, sandbox.ErrTransient, []string{"/nowhere.sock", "systemctl start docker"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := settings(e.Host)
			c.set(&set)
			var before system.Info
			e.Inform(func(i *system.Info) { before = *i; c.inform(i) })
			defer e.Inform(func(i *system.Info) { *i = before })
			err := open(t, e, docker.Config{Settings: set}).Check(t.Context())
			if c.want == nil && err != nil {
				t.Fatalf("Check: %v", err)
			}
			wantErr(t, "Check", err, c.want, c.words...)
		})
	}
}

func TestWeak(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	p := open(t, e, docker.Config{})
	e.Inform(func(i *system.Info) {
		i.PidsLimit, i.SecurityOptions = false, []string{"name=seccomp,profile=unconfined"}
	})
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Weak(), ", "); got != "no filter of system calls (seccomp), no limit of processes" {
		t.Errorf("weak: %s", got)
	}
}

// TestRootless: what a rootless engine calls root is whoever runs ship.
func TestRootless(t *testing.T) {
	t.Parallel()
	e := standIn{dockertest.New(t)}
	e.Inform(func(i *system.Info) { i.SecurityOptions = append(i.SecurityOptions, "name=rootless") })
	p := open(t, e, docker.Config{})
	create(t, p)
	if got := only(t, e).Order.User; got != "0:0" {
		t.Errorf("the box's user is %s", got)
	}
}

// TestFaults: what the engine answers keeps its meaning, and nothing is left.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault dockertest.Fault
		want  error // nil: it goes well all the same
		words string
	}{
		{dockertest.Fault{On: "info", Status: http.StatusInternalServerError, Message: "on fire"}, sandbox.ErrTransient, "on fire"},
		{dockertest.Fault{On: "image", Status: http.StatusForbidden, Message: "denied by a plugin"}, sandbox.ErrAuth, "denied by a plugin"},
		{dockertest.Fault{On: "list"}, sandbox.ErrTransient, "listing"},
		{dockertest.Fault{On: "create", Status: http.StatusNotFound, Message: "No such image: ship-box"}, sandbox.ErrIsolation, "docker pull"},
		{dockertest.Fault{On: "create", Status: http.StatusInternalServerError, Message: "no space left on device"}, sandbox.ErrTransient, "no space left"},
		{dockertest.Fault{On: "create", Status: http.StatusConflict, Message: "the name is taken"}, nil, ""},
		{dockertest.Fault{On: "create", After: true}, sandbox.ErrTransient, "making the container"},
		{dockertest.Fault{On: "start", Status: http.StatusInternalServerError, Message: "OCI runtime create failed"}, sandbox.ErrTransient, "OCI runtime"},
		{dockertest.Fault{On: "start", After: true}, sandbox.ErrTransient, "starting the container"},
		{dockertest.Fault{On: "start", Status: http.StatusConflict, Message: "removal in progress"}, nil, ""},
	} {
		t.Run(fmt.Sprint(c.fault.On, c.fault.Status, c.fault.After), func(t *testing.T) {
			e := newEngine(t)
			dir := t.TempDir()
			p := open(t, e, docker.Config{Dir: dir})
			e.Strike(c.fault)
			_, err := p.Create(t.Context(), spec(t))
			if c.want == nil && err != nil {
				t.Fatalf("Create: %v", err)
			}
			wantErr(t, "Create", err, c.want, c.words)
			// Asked again, it makes one box, whatever the first time has left.
			info := create(t, p)
			shell(t, attach(t, p, info.ID), "use", "true")
			if got := only(t, e); got.State != "running" {
				t.Errorf("the container is %s", got.State)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 || entries[0].Name() != info.ID {
				t.Errorf("folders: %v, %v", entries, err)
			}
		})
	}
}

// TestRemovalUnderWay: somebody else removes the container at the same time.
func TestRemovalUnderWay(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	p := open(t, e, docker.Config{})
	info := create(t, p)
	e.Strike(dockertest.Fault{On: "remove", After: true, Status: http.StatusConflict, Message: "removal of container is already in progress"})
	if err := p.Destroy(t.Context(), info.ID); err != nil {
		t.Errorf("Destroy: %v", err)
	}
	if left := e.Containers(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

// TestGuestThatFails: what it said is part of the error.
func TestGuestThatFails(t *testing.T) { each(t, testGuestThatFails) }

func testGuestThatFails(t *testing.T, e engine) {
	program := filepath.Join(t.TempDir(), "guest")
	sandboxtest.WriteProgram(t, program, "#!/bin/sh\necho cannot do this >&2\nexit 3\n")
	set := e.Settings()
	set.Guest = program
	p := open(t, e, docker.Config{Settings: set})
	_, err := p.Create(t.Context(), spec(t))
	wantErr(t, "Create", err, sandbox.ErrTransient, "cannot do this")
	if left := e.Containers(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	if err := docker.CheckProgram(program); err == nil {
		t.Error("a script is taken for a program")
	}
}

// deny asks an engine whose socket is not for us.
func deny(args []string) int {
	dir, err := os.MkdirTemp("", "deny")
	if err != nil {
		return fail(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := docker.New(docker.Config{Settings: settings(args[0]), Dir: dir})
	if err != nil {
		return fail(err)
	}
	fmt.Println(p.Check(context.Background()))
	return 0
}

// TestDenied: the socket belongs to root and a group, as it usually does.
func TestDenied(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	dir, err := os.MkdirTemp("", "denied")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	listener, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if err := os.Chmod(listener.Addr().String(), 0); err != nil {
		t.Fatal(err)
	}
	program := copySelf(t, dir)
	cmd := exec.CommandContext(t.Context(), program, "deny", "unix://"+listener.Addr().String())
	cmd.Env = []string{"TMPDIR=" + dir}
	if os.Getuid() == 0 { // to whom nothing is denied
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), sandbox.ErrAuth.Error()) || !strings.Contains(string(out), "add that user to the group") {
		t.Errorf("%v: %s", err, out)
	}
}

// copySelf writes the program that runs now where somebody else can execute it.
func copySelf(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "docker.test")
	sandboxtest.WriteProgram(t, program, string(binary))
	return program
}

func TestSettings(t *testing.T) {
	t.Parallel()
	good := settings("unix:///var/run/docker.sock")
	for want, spoil := range map[string]func(*docker.Settings){
		"":      func(*docker.Settings) {},
		"host":  func(s *docker.Settings) { s.Host = "tcp://127.0.0.1:2375" },
		"cpus":  func(s *docker.Settings) { s.CPUs = -1 },
		"image": func(s *docker.Settings) { s.Image = "a b" },
	} {
		s := good
		spoil(&s)
		if err := s.Validate(); want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := docker.New(docker.Config{Settings: docker.Settings{Host: "ssh://far"}, Dir: t.TempDir()}); err == nil {
		t.Error("an engine on another machine was taken")
	}
	if _, err := docker.New(docker.Config{Settings: good}); err == nil {
		t.Error("no folder was taken")
	}
}
