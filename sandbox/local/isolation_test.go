package local_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox"
	"ship/sandbox/guest"
	"ship/sandbox/local"
	"ship/sandbox/sandboxtest"
)

// TestIsolation looks at a box from inside.
func TestIsolation(t *testing.T) {
	needBubblewrap(t)
	t.Setenv("SHIP_TEST_SECRET", "do-not-tell")
	host := t.TempDir()
	for name, text := range map[string]string{"secret": "do-not-tell", "tool/run": "#!/bin/sh\necho tool\n"} {
		path := filepath.Join(host, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		sandboxtest.WriteProgram(t, path, text)
	}
	p := open(t, local.Config{Binds: []local.Bind{{Host: filepath.Join(host, "tool"), Box: "/opt/tool"}}})
	_, box := create(t, p)

	t.Run("network", func(t *testing.T) { noNetwork(t, box) })
	t.Run("files", func(t *testing.T) { noFiles(t, box, host) })
	t.Run("mounts", func(t *testing.T) { mounts(t, box) })
	t.Run("proc", func(t *testing.T) { proc(t, box) })
	t.Run("environment", func(t *testing.T) { environment(t, box) })
	t.Run("privileges", func(t *testing.T) { privileges(t, box) })
	t.Run("guest", func(t *testing.T) { guestIsSafe(t, box, p) })
}

func noNetwork(t *testing.T, box sandbox.Box) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	abstract, err := net.Listen("unix", "@ship-isolation-test-"+filepath.Base(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = abstract.Close() }()

	for name, try := range map[string]struct{ network, address, want string }{
		"internet": {"tcp", "192.0.2.1:443", "network is unreachable"},
		"datagram": {"udp", "192.0.2.1:53", "network is unreachable"},
		"host":     {"tcp", listener.Addr().String(), "connection refused"},
		"abstract": {"unix", abstract.Addr().String(), "connection refused"},
	} {
		// What gives up after a while says that, and not what is wanted.
		out := run(t, box, "net-"+name, inBox, "connect", try.network, try.address)
		if out.ExitCode == 0 || !strings.Contains(string(out.Data), try.want) {
			t.Errorf("%s: exit %d, %s, want %q", name, out.ExitCode, out.Data, try.want)
		}
	}
	out := shell(t, box, "interfaces", "tail -n +3 /proc/net/dev | cut -d: -f1; tail -n +2 /proc/net/route")
	if got := strings.TrimSpace(string(out.Data)); got != "lo" {
		t.Errorf("interfaces and routes: %q, want only lo", got)
	}
}

func noFiles(t *testing.T, box sandbox.Box, host string) {
	script := fmt.Sprintf("ls -d %s %s/secret /root /home /var /etc/shadow /etc/ssl/private /sys /boot /proc/1/root/ 2>/dev/null", host, host)
	if out := shell(t, box, "hidden", script); len(out.Data) != 0 {
		t.Errorf("visible in the box: %s", out.Data)
	}
	if out := shell(t, box, "tmp", "ls -A /tmp; touch /tmp/mine"); len(out.Data) != 0 || out.ExitCode != 0 {
		t.Errorf("/tmp is not empty and writable: %s", out.Data)
	}
	if _, err := os.Stat("/tmp/mine"); err == nil {
		t.Error("/tmp is shared with the host")
	}
	if out := run(t, box, "bind", "/opt/tool/run"); string(out.Data) != "tool\n" {
		t.Errorf("the bind yields %q, exit %d", out.Data, out.ExitCode)
	}
	for i, path := range []string{"/usr/x", "/x", "/etc/x", "/dev/x", "/opt/tool/x", "/opt/ship/ship", "/run/x", "/run/ship/host/expires", "/etc/passwd"} {
		out := shell(t, box, fmt.Sprint("readonly-", i), ": >> "+path)
		if out.ExitCode == 0 {
			t.Errorf("%s can be written", path)
		}
	}
}

func mounts(t *testing.T, box sandbox.Box) {
	out := shell(t, box, "mounts", "cat /proc/self/mountinfo")
	var writable []string
	for line := range strings.Lines(string(out.Data)) {
		fields := strings.Fields(line)
		point, options := fields[4], strings.Split(fields[5], ",")
		device := strings.HasPrefix(point, "/dev/") && point != "/dev/shm"
		if slices.Contains(options, "rw") && !device && !strings.HasPrefix(point, "/proc/") {
			writable = append(writable, point)
		}
		if !slices.Contains(options, "nosuid") {
			t.Errorf("%s honours setuid: %s", point, line)
		}
	}
	slices.Sort(writable)
	want := []string{"/dev/shm", "/proc", "/run/ship", "/tmp", "/work"}
	if diff := cmp.Diff(want, writable); diff != "" {
		t.Errorf("writable mounts (-want +got):\n%s", diff)
	}
}

func proc(t *testing.T, box sandbox.Box) {
	// Of what the kernel shows to everybody, nothing can be written: as root's
	// box that would be the whole machine.
	out := shell(t, box, "writable", `find /proc -maxdepth 5 -path '/proc/[0-9]*' -prune -o -type f -writable -print 2>/dev/null |
		while read -r f; do test -c $f || echo $f; done # a device is /dev/null in its place`)
	if len(out.Data) != 0 {
		t.Errorf("writable: %s", out.Data)
	}
	for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list"} {
		if out := shell(t, box, strings.ReplaceAll(path[1:], "/", "-"), "cat "+path); len(out.Data) != 0 && out.ExitCode == 0 {
			t.Errorf("%s can be read", path)
		}
	}
	out = shell(t, box, "processes", `for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline; echo; done`)
	lines := strings.Split(strings.TrimSpace(string(out.Data)), "\n")
	if !strings.HasPrefix(lines[0], inBox+" guest ") || len(lines) > 6 {
		t.Errorf("processes in the box: %q", lines)
	}
	if strings.Contains(lines[0], os.TempDir()) {
		t.Errorf("the first process tells paths of the host: %s", lines[0])
	}
	if out := run(t, box, "pid", "/bin/sh", "-c", "echo $$"); strings.TrimSpace(string(out.Data)) == fmt.Sprint(os.Getpid()) {
		t.Error("the process numbers are those of the host")
	}
}

func environment(t *testing.T, box sandbox.Box) {
	out := run(t, box, "env", "/usr/bin/env")
	var names []string
	for line := range strings.Lines(string(out.Data)) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"HOME", "LANG", "PATH", "SHIP_PROCESS", "TMPDIR"}, names); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	out = shell(t, box, "search", "grep -l do-not-tell /proc/[0-9]*/environ 2>/dev/null")
	if found := strings.TrimSpace(string(out.Data)); found != "" {
		t.Errorf("the gateway's environment is in %s", found)
	}
}

func privileges(t *testing.T, box sandbox.Box) {
	out := shell(t, box, "status", "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs):' /proc/self/status")
	want := "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n" +
		"CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n"
	if diff := cmp.Diff(want, string(out.Data)); diff != "" {
		t.Errorf("privileges (-want +got):\n%s", diff)
	}
	if out := run(t, box, "id", "id", "-u"); string(out.Data) != "1000\n" {
		t.Errorf("user %s", out.Data)
	}
	for name, script := range map[string]string{
		"userns":  "unshare --user true",
		"mount":   "mount -t tmpfs none /tmp",
		"remount": "mount -o remount,rw /usr",
		"umount":  "umount /run/ship/host",
		"chroot":  "chroot / true",
		"sethost": "hostname x",
	} {
		if out := shell(t, box, name, script); out.ExitCode == 0 {
			t.Errorf("%q works", script)
		}
	}
	if out := shell(t, box, "core", "ulimit -c; cat /proc/self/limits"); !strings.HasPrefix(string(out.Data), "0\n") {
		t.Errorf("core dumps: %s", out.Data)
	}
}

// guestIsSafe: no process of the box can end, read or take over its guest.
func guestIsSafe(t *testing.T, box sandbox.Box, p *local.Provider) {
	out := shell(t, box, "attack", `
		kill -KILL 1; kill -STOP 1
		cat /proc/1/environ && echo environ
		dd if=/proc/1/mem of=/dev/null bs=1 count=1 && echo mem
		readlink /proc/1/fd/* && echo fd
		find / -xdev -name '*.sock' -print; find /work /run -name '*.sock' -print`)
	for _, bad := range []string{"environ\n", "mem\n", "fd\n", ".sock\n"} {
		for line := range strings.Lines(string(out.Data)) {
			if line == bad || strings.HasSuffix(line, ".sock\n") {
				t.Errorf("a process of the box got at the guest: %s", line)
			}
		}
	}
	infos, err := p.List(t.Context(), nil)
	if err != nil || len(infos) != 1 {
		t.Fatalf("List: %v, %v", infos, err)
	}
	if _, err := p.Attach(t.Context(), infos[0].ID, 0); err != nil {
		t.Errorf("after the attack: %v", err)
	}
}

// TestBroker: the broker is the only way out.
func TestBroker(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := t.TempDir()
	_, box := create(t, open(t, local.Config{Broker: dir}))
	if out := run(t, box, "early", inBox, "get", sandbox.BrokerURL); !strings.HasPrefix(string(out.Data), "502 ") {
		t.Errorf("without a token: %s", out.Data)
	}
	if err := box.Write(t.Context(), sandbox.TokenPath, []byte("t1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(t, box, "away", inBox, "get", sandbox.BrokerURL); !strings.HasPrefix(string(out.Data), "502 ") {
		t.Errorf("without a broker: %s", out.Data)
	}
	// The broker comes after the box, as after a restart.
	listener, err := guest.ListenUnix(filepath.Join(dir, "broker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path+" "+r.Header.Get("Authorization"))
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { _ = server.Close(); <-served }()
	if out := run(t, box, "there", inBox, "get", sandbox.BrokerURL+"/git/x"); string(out.Data) != "200 /git/x Bearer t1" {
		t.Errorf("with a broker: %s", out.Data)
	}
}
