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
	"net/url"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

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
	// URL of a single node: redis://, rediss:// or unix://. It may hold a
	// password and never appears in an error.
	URL string
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
	rdb   goredis.UniversalClient
	log   *slog.Logger
	hook  func(context.Context, string)
	group *flusher
}

// Open connects, checks that the server can be trusted with sessions, and
// starts the goroutine that sends deliveries in groups, which Close ends. It
// waits for a server that is still loading its data until ctx ends.
func Open(ctx context.Context, o Options) (*Store, error) {
	opts, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, goredis.NewClient(opts), o)
	if err != nil {
		return nil, fmt.Errorf("open redis at %s: %w", opts.Addr, err)
	}
	return s, nil
}

func open(ctx context.Context, rdb goredis.UniversalClient, o Options) (*Store, error) {
	s := &Store{rdb: rdb, log: o.Logger, hook: o.Hook}
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
	s.group = newFlusher(context.WithoutCancel(ctx), s.ingest)
	return s, nil
}

// Close waits for the deliveries that are being written, then disconnects.
// Appends after it fail. It is called once.
func (s *Store) Close() error {
	s.group.stop()
	if err := s.rdb.Close(); err != nil {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// Ping answers nil when the server takes commands: it is there, it has loaded
// its data, and it can write its append-only file.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}

// parse reads a URL without ever repeating it, for it may hold a password.
func parse(address string) (*goredis.Options, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("redis.url cannot be parsed: write redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH")
	}
	if u.Scheme == "unix" && len(u.Path) > maxSocketPath {
		return nil, fmt.Errorf("redis.url: the socket's path has %d bytes, the system allows %d", len(u.Path), maxSocketPath)
	}
	opts, err := goredis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("redis.url with scheme %q is not understood: write redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH", u.Scheme)
	}
	harden(opts)
	return opts, nil
}

// harden sets what the safety of the store rests on.
func harden(o *goredis.Options) {
	logging.Disable()              // to the standard error, and what it says comes back as errors
	o.ContextTimeoutEnabled = true // otherwise deadlines of contexts are ignored
	o.MaxRetries = -1              // what may be repeated, and what not, is decided here
	o.DialTimeout = commandTime
	o.DialerRetries = 1
	o.ReadTimeout = commandTime
	o.WriteTimeout = commandTime
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
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
	for try := 0; ; try++ {
		res, err := script.Run(ctx, s.rdb, keys, args...).Result()
		if !again(err) || try == repeats || ctx.Err() != nil {
			return res, err
		}
		s.log.WarnContext(ctx, "redis did not answer, asking again", "err", err)
		if err := session.Sleep(ctx, 25*time.Millisecond<<(2*try)); err != nil {
			return nil, err
		}
	}
}

// again: the answer was lost, or never given, in a way that passes.
func again(err error) bool {
	var said goredis.Error
	switch {
	case err == nil, errors.Is(err, goredis.ErrClosed):
		return false
	case errors.As(err, &said):
		return goredis.IsLoadingError(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	default:
		return true
	}
}
