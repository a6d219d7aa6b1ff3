package docker

import (
	"path/filepath"
	"strconv"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"ship/sandbox"
	"ship/sandbox/guest"
)

// Where a box finds what does not belong to it.
const (
	brokerDir = "/run/ship-broker"
	hostDir   = "/run/ship-host"
	doorDir   = "/run/ship-door"
	guestPath = "/opt/ship/ship"
)

// Labels of our containers besides those of every box.
const (
	labelGateway = "ship_gateway"
	labelBox     = "ship_box"
)

// Most that a box may hold in memory file systems, in bytes.
const (
	maxTmp = 1 << 30
	maxShm = 64 << 20
)

// stopSeconds is how long the guest may take to end its processes.
const stopSeconds = 10

// order is all that the engine is told of a new box. Nothing is left to the
// image or to the engine's defaults that could open a box, but for its filter of
// system calls: the engine's own is the one that is kept up to date.
func (p *Provider) order(r record, can ability) client.ContainerCreateOptions {
	stop, init := stopSeconds, false
	return client.ContainerCreateOptions{
		Name: p.name(r.Key),
		Config: &container.Config{
			Image: p.cfg.Image, Hostname: "ship", WorkingDir: "/", User: can.user(),
			Entrypoint: []string{guestPath}, Cmd: p.guestArgs(r.ID),
			Env:         []string{guest.SecretVariable + "=" + r.Secret},
			Labels:      p.labels(r),
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
			StopSignal:  "SIGTERM", StopTimeout: &stop,
		},
		HostConfig: &container.HostConfig{
			NetworkMode: "none", IpcMode: "private", CgroupnsMode: "private",
			CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges:true"},
			ReadonlyRootfs: true, Runtime: p.cfg.Runtime, ShmSize: maxShm, Init: &init,
			RestartPolicy: container.RestartPolicy{Name: "no"},
			Tmpfs:         map[string]string{"/tmp": "rw,exec,nosuid,nodev,mode=1777,size=" + strconv.FormatInt(p.tmpSize(), 10)},
			Mounts:        p.mounts(r.ID),
			Resources:     p.resources(can),
			LogConfig:     container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m", "max-file": "1"}},
		},
	}
}

func (p *Provider) guestArgs(id string) []string {
	args := []string{"guest", "-box", id, "-listen", "unix:" + doorDir + "/" + doorName, "-expires", hostDir + "/expires"}
	if p.cfg.Broker != "" {
		args = append(args, "-broker", "unix:"+brokerDir+"/broker.sock")
	}
	return args
}

// labels lets nobody pass off a label of theirs as one of ours.
func (p *Provider) labels(r record) map[string]string {
	labels := r.info(sandbox.Running).Labels
	labels[labelGateway], labels[labelBox] = p.gateway, r.ID
	return labels
}

// mounts are never made by the engine: a folder that is missing is an error.
func (p *Provider) mounts(id string) []mount.Mount {
	h := p.home(id)
	all := []mount.Mount{
		{Source: h.file(workName), Target: sandbox.WorkDir},
		{Source: h.file(runName), Target: sandbox.RunDir},
		{Source: h.file(doorFolder), Target: doorDir},
		{Source: h.file(hostName), Target: hostDir, ReadOnly: true},
		{Source: p.cfg.Guest, Target: guestPath, ReadOnly: true},
	}
	for _, name := range etcNames {
		all = append(all, mount.Mount{Source: h.file(etcName, name), Target: filepath.Join("/etc", name), ReadOnly: true})
	}
	if p.cfg.Broker != "" {
		all = append(all, mount.Mount{Source: p.cfg.Broker, Target: brokerDir, ReadOnly: true})
	}
	for _, b := range p.cfg.Binds {
		all = append(all, mount.Mount{Source: b.Host, Target: b.Box, ReadOnly: true})
	}
	for i := range all {
		all[i].Type = mount.TypeBind
		all[i].BindOptions = &mount.BindOptions{Propagation: mount.PropagationRPrivate}
	}
	return all
}

// resources: more processors than there are would be refused by the engine, and
// memory without a limit on swap would be half a limit.
func (p *Provider) resources(can ability) container.Resources {
	r := container.Resources{Memory: p.cfg.Memory, MemorySwap: p.cfg.Memory}
	cpus := p.cfg.CPUs
	if can.cpus > 0 {
		cpus = min(cpus, float64(can.cpus))
	}
	r.NanoCPUs = int64(cpus * 1e9)
	if p.cfg.PIDs > 0 {
		r.PidsLimit = &p.cfg.PIDs
	}
	return r
}

// tmpSize bounds /tmp, which is memory, in bytes.
func (p *Provider) tmpSize() int64 {
	if half := p.cfg.Memory / 2; half > 0 {
		return min(half, maxTmp)
	}
	return maxTmp
}
