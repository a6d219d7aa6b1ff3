package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// confirmTime is how long a confirmation may take. With appendfsync
	// everysec a disk confirms once in a second; webhooks are given up after
	// two.
	confirmTime = 1500 * time.Millisecond
	// lanesWaiting is how many groups of deliveries may wait at the same time.
	lanesWaiting = 8
	// keepMark is how long the mark lives that a confirmation needs.
	keepMark = time.Minute
)

// errUnconfirmed: a delivery was written, and may be lost all the same.
var errUnconfirmed = errors.New("written, but not confirmed in time")

// Wait says what a delivery waits for before it counts as accepted. A delivery
// that is not confirmed in time is refused although it was written: the
// platform repeats it, and as a duplicate it waits like the first.
type Wait struct {
	// Disk: until it is on the primary's disk, and on those of the replicas
	// that are waited for. The servers have to know WAITAOF: Redis 7.2 or newer.
	Disk bool
	// Replicas is how many replicas must have it.
	Replicas int
	// For is how long; zero means 1.5 s.
	For time.Duration
}

func (w Wait) withDefaults() Wait {
	if w.For <= 0 {
		w.For = confirmTime
	}
	return w
}

func (w Wait) nothing() bool { return !w.Disk && w.Replicas <= 0 }

// lanes is how many groups go at once. Without waiting one is best, for it lets
// the next grow.
func (w Wait) lanes() int {
	if w.nothing() {
		return 1
	}
	return lanesWaiting
}

// writeAndWait runs the ingest script and waits on the same connection: what is
// waited for is what that connection wrote.
func (s *Store) writeAndWait(ctx context.Context, keys []string, args []any) (res any, err error) {
	err = s.once(ctx, keys[0], func(node *goredis.Client) (err error) {
		conn := node.Conn()
		defer func() { err = errors.Join(err, conn.Close()) }()
		if res, err = ingestScript.Run(ctx, conn, keys, args...).Result(); err != nil {
			return err
		}
		return s.confirm(ctx, conn, markKey(keys[0]))
	})
	return res, err
}

// markKey is of the shard that a key is of.
func markKey(key string) string { return key[:len(tag(0))] + ":mark" }

// confirm waits until all that the server has written is safe. The mark is one
// more write: a connection that wrote nothing, as after duplicates only, waits
// for nothing.
func (s *Store) confirm(ctx context.Context, conn *goredis.Conn, mark string) error {
	if err := conn.Set(ctx, mark, 1, keepMark).Err(); err != nil {
		return err
	}
	disks, replicas, err := s.wait.ask(ctx, conn)
	if err != nil {
		return err
	}
	if disks < s.wait.disks() || replicas < s.wait.Replicas {
		return fmt.Errorf("%w: on %d of %d disks of its own and %d of %d replicas after %s",
			errUnconfirmed, disks, s.wait.disks(), replicas, s.wait.Replicas, s.wait.For)
	}
	return nil
}

// ask returns how many disks and how many replicas have what was written.
func (w Wait) ask(ctx context.Context, conn *goredis.Conn) (disks, replicas int, err error) {
	if !w.Disk {
		n, err := conn.Wait(ctx, w.Replicas, w.For).Result()
		return 0, int(n), err
	}
	n, err := conn.WaitAOF(ctx, w.disks(), w.Replicas, w.For).Result()
	if err == nil && len(n) != 2 {
		err = fmt.Errorf("WAITAOF answered %v", n)
	}
	if err != nil {
		return 0, 0, err
	}
	return int(n[0]), int(n[1]), nil
}

func (w Wait) disks() int {
	if w.Disk {
		return 1
	}
	return 0
}

// check refuses servers that cannot confirm, or do so without cause.
func (w Wait) check(ctx context.Context, node *goredis.Client, fsync string) (err error) {
	if w.nothing() {
		return nil
	}
	conn := node.Conn()
	defer func() { err = errors.Join(err, conn.Close()) }()
	w.For = time.Millisecond // whether it can is the question, not whether it has
	_, _, err = w.ask(ctx, conn)
	switch {
	case goredis.HasErrorPrefix(err, "unknown command"):
		return errors.New("redis.wait_disk needs the command WAITAOF, which this server does not know: use Redis 7.2 or newer, or set appendfsync always instead")
	case goredis.HasErrorPrefix(err, "WAITAOF cannot"):
		return errors.New("redis.wait_disk needs an append-only file: set appendonly yes")
	case err != nil:
		return fmt.Errorf("ask whether it can confirm what is written: %w", err)
	case w.Disk && fsync == "no":
		return errors.New("redis.wait_disk has nothing to wait for with appendfsync no: set it to everysec or always")
	case w.Disk && fsync == "everysec":
		return truthful(ctx, conn)
	}
	return nil
}

// errHasty: the server takes what was written for synced, as Redis did from 7.4
// until it was mended (redis/redis pull request 13793, February 2025), and as
// Valkey 8.0.1 does (measured).
var errHasty = errors.New("redis.wait_disk cannot be relied on: this server confirms what is not on its disk yet, a known fault of some versions: use a newer one, or set appendfsync always")

// truthful finds out whether a server with appendfsync everysec confirms only
// what it synced. It syncs once in a second, so of three writes that wait for
// one another the last is confirmed a second after the first, or too early.
func truthful(ctx context.Context, conn *goredis.Conn) error {
	start := time.Now()
	for range 3 {
		if err := conn.Set(ctx, tag(0)+":mark", 1, keepMark).Err(); err != nil {
			return fmt.Errorf("ask whether it confirms what is on its disk: %w", err)
		}
		if err := conn.WaitAOF(ctx, 1, 0, 2*confirmTime).Err(); err != nil {
			return fmt.Errorf("ask whether it confirms what is on its disk: %w", err)
		}
	}
	if time.Since(start) < 900*time.Millisecond {
		return errHasty
	}
	return nil
}
