package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

// oldest is the first major version of the server that has what the scripts
// need: flags on their first line.
const oldest = 7

// Durability is what the server says of how it keeps data.
type Durability struct {
	// Version of the server.
	Version string
	// AppendOnly: every write goes to a file. Fsync is when that is forced to
	// the disk: always, everysec or no; empty when the server does not tell.
	AppendOnly bool
	Fsync      string
	// Eviction is the maxmemory-policy.
	Eviction string
	// role is master, or what it is instead.
	role string
}

// Safe: nothing that was acknowledged is lost by a crash of the process or of
// the machine, and nothing is evicted.
func (d Durability) Safe() bool {
	return d.AppendOnly && d.Fsync == "always" && d.Eviction == "noeviction"
}

// String says in a sentence what is survived, and how to survive more.
func (d Durability) String() string {
	text := "Redis " + d.Version + " " + d.survives()
	if d.Eviction != "noeviction" {
		text += "; when its memory is full it may forget which deliveries it has seen (set maxmemory-policy noeviction)"
	}
	return text
}

func (d Durability) survives() string {
	switch {
	case !d.AppendOnly:
		return "loses what came in since its last snapshot when it ends (set appendonly yes and appendfsync always)"
	case d.Fsync == "always":
		return "survives its own crash and a power cut"
	case d.Fsync == "everysec":
		return "survives its own crash; a power cut loses about a second of accepted requests (set appendfsync always)"
	case d.Fsync == "no":
		return "survives its own crash; a power cut loses up to half a minute of accepted requests (set appendfsync always)"
	default:
		return "survives its own crash; it does not tell whether a power cut loses accepted requests (appendfsync)"
	}
}

// Durability asks the server how it keeps data. On a cluster one of its nodes
// answers for all.
func (s *Store) Durability(ctx context.Context) (Durability, error) {
	info, err := s.rdb.Info(ctx).Result()
	if err != nil {
		return Durability{}, fmt.Errorf("ask redis how it keeps data: %w", err)
	}
	f := infoFields(info)
	d := Durability{
		Version: f["redis_version"], AppendOnly: f["aof_enabled"] == "1",
		Eviction: f["maxmemory_policy"], role: f["role"],
	}
	// Hosted servers forbid CONFIG; then this one thing stays unknown.
	if conf, err := s.rdb.ConfigGet(ctx, "appendfsync").Result(); err == nil {
		d.Fsync = conf["appendfsync"]
	}
	return d, nil
}

// infoFields reads the lines of INFO.
func infoFields(info string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// prepare refuses a server that would lose or refuse sessions, and readies it.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.awaitLoaded(ctx); err != nil {
		return err
	}
	d, err := s.Durability(ctx)
	if err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	if err := s.checkShards(ctx); err != nil {
		return err
	}
	return s.load(ctx, allScripts()...)
}

// awaitLoaded waits while the server reads its append-only file.
func (s *Store) awaitLoaded(ctx context.Context) error {
	for {
		err := s.Ping(ctx)
		if !goredis.IsLoadingError(err) {
			return err
		}
		if err := session.Sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for redis to load its data: %w", err)
		}
	}
}

func (d Durability) check() error {
	major, _, _ := strings.Cut(d.Version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldest {
		return fmt.Errorf("version %q is too old: version %d.0 or newer is needed", d.Version, oldest)
	}
	if strings.HasPrefix(d.Eviction, "allkeys-") {
		return fmt.Errorf("maxmemory-policy %s may evict sessions: set it to noeviction", d.Eviction)
	}
	if d.role != "master" {
		return fmt.Errorf("this server is a %s: give the address of the primary", d.role)
	}
	return nil
}

// checkShards writes the number of shards to a new server, and refuses one
// whose data is spread differently: its sessions would not be found.
func (s *Store) checkShards(ctx context.Context) error {
	found, err := s.rdb.Get(ctx, shardsKey).Int()
	if err == goredis.Nil {
		if err := s.rdb.SetNX(ctx, shardsKey, shards, 0).Err(); err != nil {
			return fmt.Errorf("write %s: %w", shardsKey, err)
		}
		found, err = s.rdb.Get(ctx, shardsKey).Int()
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", shardsKey, err)
	}
	if found != shards {
		return fmt.Errorf("its sessions are spread over %d shards, this release reads %d", found, shards)
	}
	return nil
}

// load hands scripts to the server, or to every server of a cluster.
func (s *Store) load(ctx context.Context, scripts ...*goredis.Script) error {
	for _, script := range scripts {
		if err := script.Load(ctx, s.rdb).Err(); err != nil {
			return fmt.Errorf("load scripts: %w", err)
		}
	}
	return nil
}
