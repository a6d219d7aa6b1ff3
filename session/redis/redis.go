// Package redis keeps sessions in Redis 7.0 or newer. It is the only package
// that knows go-redis.
//
// Every session has a mailbox: an inbox stream with explicit ids, a small hash
// with the lease, the version and the positions, and its state in a string.
// One sorted set per shard says when somebody must next look at a session; it
// is the ready queue, the timers, the retries and the leases in one. A session
// changes only by one of the scripts in scripts/, each a single atomic step
// that may be sent twice.
//
// All keys of a session share the hash tag of its shard, {00} to {15}, so that
// no step ever spans two slots of a cluster. docs/redis.md lists every key.
package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

const (
	// commandTime is how long one command may take on the wire.
	commandTime = time.Second
	// batch is how many events a claim or a read hands out.
	batch = 100
	// repeats is how often a script is sent again when its answer was lost.
	repeats = 2
)

// Options for Open.
type Options struct {
	// URL says where the servers are. One server: redis://, rediss:// (TLS) or
	// unix://. A primary that Sentinels watch over:
	// redis+sentinel://USER:PASSWORD@HOST,HOST,HOST/NAME, with the login of the
	// servers and the addresses of the Sentinels. A cluster:
	// redis+cluster://USER:PASSWORD@HOST,HOST,HOST, any of its nodes. It may
	// hold a password and never appears in an error.
	URL string
	// SentinelPassword is what the Sentinels themselves ask for, if they do.
	SentinelPassword string
	// TLS is for addresses with rediss.
	TLS TLS
	// Wait is what a delivery waits for before it counts as accepted.
	Wait Wait
	// Logger for what is healed silently; nil discards.
	Logger *slog.Logger
	// Hook, when set, is called before and after every write that decides
	// something, with a point such as "commit.before". Crash tests end the
	// caller in it.
	Hook func(ctx context.Context, point string)
}

// Store keeps sessions in Redis. It implements session.Inbox, Store, Archive,
// Graveyard, Transcript and Ledger. All methods are safe for concurrent use.
type Store struct {
	rdb  goredis.UniversalClient
	log  *slog.Logger
	hook func(context.Context, string)
	wait Wait
	// watched: Sentinels may put another server in this one's place.
	watched bool
	groups  []*flusher // one, or on a cluster one per shard
}

// Open connects, checks that the server can be trusted with sessions, and
// starts the goroutine that sends deliveries in groups, which Close ends. It
// waits for a server that is still loading its data until ctx ends.
func Open(ctx context.Context, o Options) (*Store, error) {
	a, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	rdb, err := a.client(o)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, a, rdb, o)
	if err != nil {
		return nil, fmt.Errorf("open redis at %s: %w", a, err)
	}
	return s, nil
}

func open(ctx context.Context, a address, rdb goredis.UniversalClient, o Options) (*Store, error) {
	s := &Store{rdb: rdb, watched: a.mode == sentinel, log: o.Logger, hook: o.Hook, wait: o.Wait.withDefaults()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.hook == nil {
		s.hook = func(context.Context, string) {}
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	// The store outlives the call that opens it, which may have a deadline.
	ctx = context.WithoutCancel(ctx)
	for range s.slots() {
		s.groups = append(s.groups, newFlusher(ctx, s.ingest, s.wait.lanes()))
	}
	return s, nil
}

// Close waits for the deliveries that are being written, then disconnects.
// Appends after it fail. It is called once.
func (s *Store) Close() error {
	for _, g := range s.groups {
		g.stop()
	}
	if err := s.rdb.Close(); err != nil {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// Ping answers nil when the server takes commands: it is there, it has loaded
// its data, and it can write its append-only file. Of a cluster one node is
// enough: what the others hold is refused one by one.
func (s *Store) Ping(ctx context.Context) error {
	answered, err := s.ping(ctx)
	if err != nil && answered == 0 {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}

// ping counts the servers that take commands.
func (s *Store) ping(ctx context.Context) (answered int64, err error) {
	var n atomic.Int64
	err = s.eachNode(ctx, func(ctx context.Context, node *goredis.Client) error {
		err := node.Ping(ctx).Err()
		if err == nil {
			n.Add(1)
		}
		return err
	})
	return n.Load(), err
}

// around performs a write between its two points.
func (s *Store) around(ctx context.Context, op string, write func() error) error {
	s.hook(ctx, op+".before")
	err := write()
	s.hook(ctx, op+".after")
	return err
}

// run sends a script that may be performed twice, again when its answer was
// lost. A server that forgot the script gets it with the next try.
func (s *Store) run(ctx context.Context, script *goredis.Script, keys []string, args ...any) (any, error) {
	return s.repeat(ctx, func() (any, error) { return script.Run(ctx, s.rdb, keys, args...).Result() })
}

// repeat does once more what may be done twice and got no answer.
func (s *Store) repeat(ctx context.Context, do func() (any, error)) (any, error) {
	for try := 0; ; try++ {
		res, err := do()
		if !again(err) || try == repeats || ctx.Err() != nil {
			return res, err
		}
		s.log.WarnContext(ctx, "redis did not answer, asking again", "err", err)
		s.relocate(ctx)
		if err := session.Sleep(ctx, 25*time.Millisecond<<(2*try)); err != nil {
			return nil, err
		}
	}
}

// again: the answer was lost, or never given, in a way that passes.
func again(err error) bool {
	var said goredis.Error
	switch {
	case err == nil, errors.Is(err, goredis.ErrClosed), errors.Is(err, errUnconfirmed):
		return false
	case errors.As(err, &said):
		return passes(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	default:
		return true
	}
}

// passes: the server refuses for a moment, as while it starts, or while another
// takes its place.
func passes(err error) bool {
	_, moved := goredis.IsMovedError(err)
	return moved || goredis.IsLoadingError(err) || goredis.IsReadOnlyError(err) ||
		goredis.IsMasterDownError(err) || goredis.IsClusterDownError(err) || goredis.IsTryAgainError(err)
}
