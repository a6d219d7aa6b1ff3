package docker

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"ship/sandbox"
)

// boxUser is who everything in a box runs as where that cannot be whoever runs
// ship, because that is root.
const boxUser = 1000

// ability is what the engine can do here.
type ability struct {
	// uid and gid of everything in a box, as the engine takes them.
	uid, gid int
	// cpus is how many processors there are.
	cpus int
	// weak are protections that a box will not have.
	weak []string
}

func (a ability) user() string { return strconv.Itoa(a.uid) + ":" + strconv.Itoa(a.gid) }

// Check reports whether the engine can make a box. What a person has to mend
// wraps sandbox.ErrIsolation or sandbox.ErrAuth and says how.
func (p *Provider) Check(ctx context.Context) error {
	_, err := p.check(ctx)
	return err
}

// check asks until it went well once: Create says itself when an image has gone
// since.
func (p *Provider) check(ctx context.Context) (ability, error) {
	if can := p.checked.Load(); can != nil {
		return *can, nil
	}
	result, err := p.engine.Info(ctx, client.InfoOptions{})
	if err != nil {
		return ability{}, fault(ctx, "asking the engine about itself", err)
	}
	can, err := p.judge(result.Info)
	if err != nil {
		return ability{}, fmt.Errorf("%w: %w", sandbox.ErrIsolation, err)
	}
	if _, err := p.engine.ImageInspect(ctx, p.cfg.Image); errdefs.IsNotFound(err) {
		return ability{}, p.noImage()
	} else if err != nil {
		return ability{}, fault(ctx, "looking for the image", err)
	}
	if p.checked.CompareAndSwap(nil, &can) && len(can.weak) > 0 {
		p.cfg.Logger.Warn("boxes are protected less than they could be", "missing", can.weak)
	}
	return can, nil
}

func (p *Provider) noImage() error {
	return fmt.Errorf("%w: the image %s is not on this machine: run `docker pull %[2]s`, or build it as docs/sandbox.md shows, or set sandbox.docker.image", sandbox.ErrIsolation, p.cfg.Image)
}

// Weak lists protections that boxes do not have on this engine, once Check went
// well.
func (p *Provider) Weak() []string {
	if can := p.checked.Load(); can != nil {
		return slices.Clone(can.weak)
	}
	return nil
}

// judge says who boxes run as: whoever runs ship, so that both can use the
// folders. In a rootless engine that is what a container calls root.
func (p *Provider) judge(info system.Info) (ability, error) {
	can := ability{uid: os.Getuid(), gid: os.Getgid(), cpus: info.NCPU, weak: p.missing(info)}
	_, known := info.Runtimes[p.cfg.Runtime]
	switch {
	case info.OSType != "" && info.OSType != "linux":
		return can, fmt.Errorf("the engine makes containers for %s: ship needs one for linux", info.OSType)
	case p.cfg.Runtime != "" && !known:
		return can, fmt.Errorf("the engine has no runtime %s: add it to its daemon.json, or correct sandbox.docker.runtime", p.cfg.Runtime)
	case has(info, "userns"):
		return can, fmt.Errorf("the engine gives containers users of their own (userns-remap), to whom ship's folders are closed: switch it off, or use a rootless engine")
	case has(info, "rootless"):
		can.uid, can.gid = 0, 0
	case can.uid == 0:
		can.uid, can.gid = boxUser, boxUser
	}
	return can, nil
}

// missing are the limits and filters that the engine cannot enforce.
func (p *Provider) missing(info system.Info) []string {
	var all []string
	for _, one := range []struct {
		lacks bool
		what  string
	}{
		{!has(info, "seccomp"), "no filter of system calls (seccomp)"},
		{p.cfg.Memory > 0 && !info.MemoryLimit, "no limit of memory"},
		{p.cfg.PIDs > 0 && !info.PidsLimit, "no limit of processes"},
		{p.cfg.CPUs > 0 && !info.CPUCfsQuota, "no limit of processors"},
	} {
		if one.lacks {
			all = append(all, one.what)
		}
	}
	return all
}

// has looks for an option such as "name=seccomp,profile=builtin".
func has(info system.Info, option string) bool {
	return slices.ContainsFunc(info.SecurityOptions, func(text string) bool {
		name, rest, _ := strings.Cut(text, ",")
		return name == "name="+option && !strings.Contains(rest, "profile=unconfined")
	})
}

// machines are the processors that Go and ELF call by different names.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// CheckProgram refuses a program that could not run in a box: an image need not
// have this machine's libraries.
func CheckProgram(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("the guest's program %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	if want, ok := machines[runtime.GOARCH]; ok && file.Machine != want {
		return fmt.Errorf("the guest's program %s is for %s", path, file.Machine)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return fmt.Errorf("the guest's program %s needs this machine's libraries, which an image need not have: build ship with CGO_ENABLED=0 (make build)", path)
		}
	}
	return nil
}
