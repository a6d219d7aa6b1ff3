package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

// oldest is the first major version of the server that has what the scripts
// need: flags on their first line.
const oldest = 7

// Durability is what the servers say of how they keep data: of a cluster, the
// one that keeps it worst.
type Durability struct {
	// Version of the server.
	Version string
	// AppendOnly: every write goes to a file. Fsync is when that is forced to
	// the disk: always, everysec or no; empty when the server does not tell.
	AppendOnly bool
	Fsync      string
	// Eviction is the maxmemory-policy.
	Eviction string
	// Replicas is how many follow the server now.
	Replicas int
	// Failover: another may take the server's place.
	Failover bool
	// Wait is what deliveries wait for.
	Wait Wait
	// role is master, or what it is instead; mode is standalone, sentinel or
	// cluster.
	role, mode string
}

// Safe: nothing that was accepted is lost by a crash of the process or of the
// machine, nor when another server takes over, and nothing is evicted.
func (d Durability) Safe() bool { return d.flaws() == 0 }

// flaws counts, the gravest most.
func (d Durability) flaws() (n int) {
	for weight, flawed := range map[int]bool{
		8: !d.AppendOnly,
		4: d.Fsync != "always" && !d.Wait.Disk,
		2: d.Eviction != "noeviction",
		1: d.Failover && d.Wait.Replicas == 0 || d.Replicas < d.Wait.Replicas,
	} {
		if flawed {
			n += weight
		}
	}
	return n
}

// String says in a sentence what is survived, and how to survive more.
func (d Durability) String() string {
	text := "Redis " + d.Version + " " + d.survives()
	if d.Eviction != "noeviction" {
		text += "; when its memory is full it may forget which deliveries it has seen (set maxmemory-policy noeviction)"
	}
	switch {
	case d.Replicas < d.Wait.Replicas:
		text += fmt.Sprintf("; it has %d replicas where redis.wait_replicas is %d, so it accepts nothing", d.Replicas, d.Wait.Replicas)
	case d.Failover && d.Wait.Replicas == 0:
		text += "; when another server takes over, what was accepted just before may be lost (set redis.wait_replicas)"
	case d.Failover:
		text += fmt.Sprintf("; what it accepts is on %s too before another may have to take over", count(d.Wait.Replicas, "replica"))
	}
	return text
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (d Durability) survives() string {
	switch {
	case !d.AppendOnly:
		return "loses what came in since its last snapshot when it ends (set appendonly yes and appendfsync always)"
	case d.Fsync == "always":
		return "survives its own crash and a power cut"
	case d.Wait.Disk:
		return "survives its own crash, and a power cut loses no accepted request; it may undo about a second of work, which is done again"
	case d.Fsync == "everysec":
		return "survives its own crash; a power cut loses about a second of accepted requests (set appendfsync always)"
	case d.Fsync == "no":
		return "survives its own crash; a power cut loses up to half a minute of accepted requests (set appendfsync always)"
	default:
		return "survives its own crash; it does not tell whether a power cut loses accepted requests (appendfsync)"
	}
}

// Durability asks the servers how they keep data.
func (s *Store) Durability(ctx context.Context) (Durability, error) {
	var mu sync.Mutex
	var all []Durability
	err := s.eachNode(ctx, func(ctx context.Context, node *goredis.Client) error {
		d, err := durability(ctx, node)
		d.Wait, d.Failover = s.wait, s.watched || d.mode == "cluster" && d.Replicas > 0
		mu.Lock()
		defer mu.Unlock()
		all = append(all, d)
		return err
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the cluster has no servers")
	}
	if err != nil {
		return Durability{}, fmt.Errorf("ask redis how it keeps data: %w", err)
	}
	return slices.MaxFunc(all, func(a, b Durability) int { return cmp.Compare(a.flaws(), b.flaws()) }), nil
}

func durability(ctx context.Context, node *goredis.Client) (Durability, error) {
	info, err := node.Info(ctx).Result()
	if err != nil {
		return Durability{}, err
	}
	f := infoFields(info)
	d := Durability{
		Version: f["redis_version"], AppendOnly: f["aof_enabled"] == "1",
		Eviction: f["maxmemory_policy"], role: f["role"], mode: f["redis_mode"],
	}
	d.Replicas, _ = strconv.Atoi(f["connected_slaves"]) // not told: none to count on
	// Hosted servers forbid CONFIG; then this one thing stays unknown.
	if conf, err := node.ConfigGet(ctx, "appendfsync").Result(); err == nil {
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

// prepare refuses servers that would lose or refuse sessions, and readies them.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.awaitLoaded(ctx); err != nil {
		return err
	}
	if err := s.eachNode(ctx, s.inspect); err != nil {
		return err
	}
	return s.checkShards(ctx)
}

// inspect checks one server and hands it the scripts.
func (s *Store) inspect(ctx context.Context, node *goredis.Client) error {
	d, err := durability(ctx, node)
	if err != nil {
		return fmt.Errorf("ask redis how it keeps data: %w", err)
	}
	if err := d.check(); err != nil {
		return err
	}
	if d.mode == "cluster" && s.slots() == 1 {
		return errors.New("this server is a node of a cluster: write redis.url as redis+cluster://HOST,HOST,HOST")
	}
	if err := s.wait.check(ctx, node, d.Fsync); err != nil {
		return err
	}
	for _, script := range allScripts() {
		if err := script.Load(ctx, node).Err(); err != nil {
			return fmt.Errorf("load scripts: %w", err)
		}
	}
	return nil
}

// awaitLoaded waits while a server reads its append-only file.
func (s *Store) awaitLoaded(ctx context.Context) error {
	for {
		_, err := s.ping(ctx)
		if err != nil && !goredis.IsLoadingError(err) {
			return fmt.Errorf("ping redis: %w", err)
		}
		if err == nil {
			return nil
		}
		if err := session.Sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for redis to load its data: %w", err)
		}
	}
}

func (d Durability) check() error {
	if d.mode == "sentinel" {
		return errors.New("this server is a Sentinel: write redis.url as redis+sentinel://HOST,HOST,HOST/NAME, with the name of its primary")
	}
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
