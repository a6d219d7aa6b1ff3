package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ship/config"
	"ship/sandbox"
	"ship/sandbox/broker"
	"ship/sandbox/local"
	"ship/session/redis"
)

func checkSettings(_ context.Context, p *patient) []finding {
	s, err := readSettings(p.configPath, p.environ)
	if err != nil {
		return complaints(err)
	}
	p.settings = s
	if path := settingsPath(p.configPath, p.environ); path != "" {
		return []finding{good("%s is understood", path)}
	}
	return []finding{good("there is no file; the environment alone is used")}
}

// complaints are the problems of the settings, one by one.
func complaints(err error) (found []finding) {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range list.Unwrap() {
			found = append(found, complaints(one)...)
		}
		return found
	}
	remedy := "see docs/settings.md"
	what := err.Error()
	var p *config.Problem
	if errors.As(err, &p) && p.Remedy != "" {
		remedy, what = p.Remedy, strings.TrimSuffix(what, "; "+p.Remedy)
	}
	return []finding{bad(remedy, "%s", what)}
}

// checkDataDir makes nothing that ship serve would make: another user may be
// the one to run that.
func checkDataDir(_ context.Context, p *patient) finding {
	dir := p.settings.DataDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkParent(dir)
	case err != nil:
		return bad("set data_dir to a folder of the user that runs ship", "%v", err)
	case !info.IsDir():
		return bad("set data_dir to a folder", "%s is not a folder", dir)
	}
	probe, err := os.CreateTemp(dir, ".ship-doctor-")
	if err != nil {
		return bad("give it to the user that runs ship: chown -R", "%s cannot be written to: %v", dir, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return bad("check the disk", "%s cannot be written to: %v", dir, err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return doubt("run ship doctor as the user that runs ship", "%s is writable, but belongs to user %d and this is user %d", dir, owner.Uid, os.Geteuid())
	}
	return good("%s is writable", dir)
}

// checkParent looks at the nearest folder that there is.
func checkParent(dir string) finding {
	parent := filepath.Dir(dir)
	for {
		_, err := os.Stat(parent)
		if err == nil || parent == filepath.Dir(parent) {
			break
		}
		parent = filepath.Dir(parent)
	}
	if err := unix.Access(parent, unix.W_OK|unix.X_OK); err != nil {
		return bad("make it, and give it to the user that runs ship", "%s is not there, and cannot be made in %s: %v", dir, parent, err)
	}
	return good("%s is not there yet; ship serve makes it", dir)
}

func checkBrokerKey(_ context.Context, p *patient) finding {
	path := filepath.Join(p.settings.DataDir, "broker.key")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return good("none yet; ship serve makes one")
	}
	if _, err := broker.LoadKey(path); err != nil {
		return bad("correct it; or delete it while ship does not run, and running turns have to be retried", "%v", err)
	}
	return good("%s can be read, by nobody else", path)
}

func checkRedis(ctx context.Context, p *patient) finding {
	o := p.settings.Redis.options(slog.New(slog.DiscardHandler))
	if o.URL != "" {
		o.Wait = p.settings.Redis.wait()
		return askRedis(ctx, o, "", "start it, or correct redis.url")
	}
	o.URL = redis.EmbeddedURL(filepath.Join(p.settings.DataDir, "redis"))
	running, err := listens(o.URL)
	switch {
	case err != nil:
		return bad("run ship doctor as the user that runs ship; if the path is too long, set a shorter data_dir", "embedded: %v", err)
	case running:
		return askRedis(ctx, o, "embedded, running: ", "see redis.log in data_dir")
	}
	return checkRedisServer(ctx)
}

// listens tells whether a server is on a unix socket.
func listens(address string) (bool, error) {
	u, err := url.Parse(address)
	if err != nil {
		return false, err
	}
	conn, err := net.DialTimeout("unix", u.Path, time.Second)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, conn.Close()
}

// askRedis opens the server as ship serve does, which marks a new one with the
// number of shards. Twice is once.
func askRedis(ctx context.Context, o redis.Options, prefix, remedy string) finding {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	store, err := redis.Open(ctx, o)
	if err != nil {
		return bad(remedy, "%s%v", prefix, err)
	}
	defer store.Close()
	d, err := store.Durability(ctx)
	switch {
	case err != nil:
		return bad(remedy, "%s%v", prefix, err)
	case !d.Safe():
		return doubt("see docs/redis.md", "%s%s", prefix, d)
	}
	return good("%s%s", prefix, d)
}

// redisVersion is in what redis-server says with --version.
var redisVersion = regexp.MustCompile(`\bv=(\d+)\.([0-9.]+)`)

func checkRedisServer(ctx context.Context) finding {
	const remedy = "install it (apt install redis-server, dnf install redis), or set redis.url"
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return bad(remedy, "embedded: redis-server is not installed")
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return bad(remedy, "embedded: %s does not start: %v", path, err)
	}
	found := redisVersion.FindStringSubmatch(string(out))
	if found == nil {
		return doubt("make sure that it is version 7.0 or newer", "embedded: %s does not tell its version", path)
	}
	if major, err := strconv.Atoi(found[1]); err != nil || major < 7 {
		return bad("install version 7.0 or newer, or set redis.url", "embedded: %s has version %s.%s", path, found[1], found[2])
	}
	return good("embedded: %s %s.%s, started by ship serve; survives its own crash and a power cut", path, found[1], found[2])
}

// checkSandbox starts a box in a folder of its own, as ship serve would.
func checkSandbox(ctx context.Context, p *patient) finding {
	s := p.settings
	if !slices.Contains([]string{"local", "docker", "e2b"}, s.Sandbox.Provider) {
		return bad("use local, docker or e2b", "sandbox.provider: %q is not known", s.Sandbox.Provider)
	}
	dir, err := os.MkdirTemp("", "ship-doctor-")
	if err != nil {
		return bad("make room for temporary files", "%v", err)
	}
	defer os.RemoveAll(dir)
	s.DataDir = dir
	switch s.Sandbox.Provider {
	case "docker":
		return checkDocker(ctx, s)
	case "e2b":
		return checkE2B(ctx, s)
	}
	provider, err := tryLocal(ctx, s)
	if err != nil {
		return bad("see docs/sandbox.md", "%v", err)
	}
	switch limits := provider.Limits(); {
	case s.Sandbox.Local.Isolation == local.None:
		return doubt("keep it so only where the whole machine is a sandbox; else set sandbox.local.isolation to bubblewrap", "boxes are not isolated: the agent can read all that ship can; %s", limits)
	case strings.Contains(limits, "not enforced"):
		return doubt("run ship by deploy/systemd/ship.service, which may limit its boxes", "boxes are isolated by bubblewrap; from this shell, %s", limits)
	default:
		return good("boxes are isolated by bubblewrap; %s", limits)
	}
}

// checkDocker makes no box: the engine is asked whether it has what one needs.
func checkDocker(ctx context.Context, s Settings) finding {
	set := s.Sandbox.Docker
	provider, err := openDocker(ctx, s, slog.New(slog.DiscardHandler))
	switch {
	case errors.Is(err, sandbox.ErrAuth):
		return bad("usermod -aG docker, for the user that runs ship; see docs/sandbox.md for what that means", "%v", err)
	case err != nil:
		return bad("see docs/sandbox.md", "%v", err)
	}
	if weak := provider.Weak(); len(weak) > 0 {
		return doubt("see docs/sandbox.md for what the engine needs", "boxes are containers of image %s, with %s", set.Image, strings.Join(weak, ", "))
	}
	return good("boxes are containers of image %s at %s; whether it is fit shows when the first box is made", set.Image, set.Host)
}

// checkE2B makes no box, as that would cost something.
func checkE2B(ctx context.Context, s Settings) finding {
	_, err := openE2B(ctx, s, aside{}, slog.New(slog.DiscardHandler))
	switch {
	case errors.Is(err, sandbox.ErrAuth):
		return bad("take a valid key from the dashboard of the E2B team and set sandbox.e2b.api_key", "%v", err)
	case err != nil:
		return bad("see docs/sandbox.md", "%v", err)
	}
	return good("E2B at %s knows the API key; whether template %s is fit shows when the first box is made", s.Sandbox.E2B.APIURL, s.Sandbox.E2B.Template)
}

// aside is a vault with nothing in it, for a look that keeps nothing.
type aside struct{}

// Load implements e2b.Vault.
func (aside) Load(context.Context, string) ([]byte, int64, error) { return nil, 0, nil }

// Swap implements e2b.Vault.
func (aside) Swap(context.Context, string, int64, []byte, time.Duration) (bool, error) {
	return false, nil
}

func tryLocal(ctx context.Context, s Settings) (*local.Provider, error) {
	if err := os.MkdirAll(brokerDir(s), 0o700); err != nil {
		return nil, err
	}
	provider, err := local.New(local.Config{
		Dir: filepath.Join(s.DataDir, "boxes"), Isolation: s.Sandbox.Local.Isolation,
		Broker: brokerDir(s), Path: toolPath(os.Getenv("PATH")),
		Limits: local.Limits{Memory: s.Sandbox.Local.Memory, PIDs: s.Sandbox.Local.PIDs},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return provider, provider.Check(ctx)
}

// versionNumber is what programs begin with when asked for their version.
var versionNumber = regexp.MustCompile(`^v?(\d+\.\d+\.\d+\S*)`)

func checkOpenCode(ctx context.Context, p *patient) finding {
	install := "npm install -g opencode-ai@" + opencodeVersion
	if p.settings.Sandbox.Provider == "docker" && p.settings.Agent.OpenCode == "" {
		return good("it is part of the image %s, at %s", p.settings.Sandbox.Docker.Image, programInBox)
	}
	if p.settings.Sandbox.Provider == "e2b" {
		return good("it is part of the template %s, at %s", p.settings.Sandbox.E2B.Template, programInBox)
	}
	set := p.settings.Agent.OpenCode
	program, err := findOpenCode(set)
	switch {
	case err != nil && set != "":
		return bad("correct agent.opencode", "%v", err)
	case err != nil:
		return bad(install+", or set agent.opencode to its path", "OpenCode is not installed")
	}
	found, err := programVersion(ctx, program)
	switch {
	case err != nil:
		return bad(install, "%s does not tell its version: %v", program, err)
	case found != opencodeVersion:
		return doubt(install, "%s has version %s; ship is tested with %s", program, found, opencodeVersion)
	}
	return good("%s %s", program, found)
}

// programVersion runs a program in an empty home, where it can leave nothing.
func programVersion(ctx context.Context, program string) (string, error) {
	home, err := os.MkdirTemp("", "ship-doctor-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}, home
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	found := versionNumber.FindStringSubmatch(strings.TrimSpace(string(out)))
	if found == nil {
		return "", fmt.Errorf("it said %q", shorten(string(out), 60))
	}
	return found[1], nil
}
