package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"ship/session"
)

// TLS names files, in PEM. All are optional: without CA the system's
// authorities are trusted, and without Cert and Key, which go together, no
// certificate is shown to the server.
type TLS struct{ CA, Cert, Key string }

// config is nil for a connection that is not encrypted.
func (t TLS) config(encrypted bool) (*tls.Config, error) {
	if !encrypted {
		if t != (TLS{}) {
			return nil, errors.New("redis.ca_file, cert_file and key_file are for TLS: write redis.url with rediss")
		}
		return nil, nil
	}
	// Without a ServerName: that is the host of each connection.
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read redis.ca_file: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redis.ca_file: there is no certificate in %s", t.CA)
		}
	}
	if t.Cert == "" && t.Key == "" {
		return conf, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("read redis.cert_file and redis.key_file: %w", err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}

// harden sets what the safety of the store rests on. The other kinds of clients
// below get the same.
func harden(o *goredis.Options) {
	quiet()
	o.ContextTimeoutEnabled = true // otherwise deadlines of contexts are ignored
	o.MaxRetries = -1              // what may be repeated, and what not, is decided here
	o.DialTimeout = commandTime
	o.DialerRetries = 1
	o.ReadTimeout = commandTime
	o.WriteTimeout = commandTime
	o.DisableIdentity = true // one right less to ask for
	o.MaintNotificationsConfig = noNotifications()
}

// quiet: the library writes to the standard error what comes back as errors too.
func quiet() { logging.Disable() }

func noNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// failoverClient asks the Sentinels who the primary is, and again when they say
// that it changed.
func (a address) failoverClient(conf *tls.Config, sentinelPassword string) *goredis.Client {
	quiet()
	return goredis.NewFailoverClient(&goredis.FailoverOptions{
		MasterName: a.name, SentinelAddrs: a.hosts, SentinelPassword: sentinelPassword,
		Username: a.user, Password: a.password, DB: a.db, TLSConfig: conf,
		ContextTimeoutEnabled: true, MaxRetries: -1,
		DialTimeout: commandTime, DialerRetries: 1, ReadTimeout: commandTime, WriteTimeout: commandTime,
		DisableIdentity: true,
	})
}

// clusterClient follows redirections, and repeats what got no answer as often:
// what must not be repeated goes through Store.once. It asks often who holds
// what, for a server that is gone redirects nobody, and by itself the library
// would keep calling it for a minute.
func (a address) clusterClient(conf *tls.Config) *goredis.ClusterClient {
	quiet()
	return goredis.NewClusterClient(&goredis.ClusterOptions{
		Addrs: a.hosts, Username: a.user, Password: a.password, TLSConfig: conf,
		ContextTimeoutEnabled: true, MaxRetries: -1,
		DialTimeout: commandTime, DialerRetries: 1, ReadTimeout: commandTime, WriteTimeout: commandTime,
		DisableIdentity: true, MaintNotificationsConfig: noNotifications(),
		ClusterStateReloadInterval: lookAround,
	})
}

// lookAround is how old what is known of a cluster may be.
const lookAround = 2 * time.Second

// eachNode visits every server that holds keys; on a cluster, several at once.
func (s *Store) eachNode(ctx context.Context, visit func(context.Context, *goredis.Client) error) error {
	switch rdb := s.rdb.(type) {
	case *goredis.ClusterClient:
		return rdb.ForEachMaster(ctx, visit)
	case *goredis.Client:
		return visit(ctx, rdb)
	default:
		return fmt.Errorf("unexpected client %T", rdb)
	}
}

// once has do speak with the server that holds a key, and does not repeat it
// unless that server refused because it holds the key no longer.
func (s *Store) once(ctx context.Context, key string, do func(*goredis.Client) error) error {
	rdb, isCluster := s.rdb.(*goredis.ClusterClient)
	if !isCluster {
		return s.eachNode(ctx, func(_ context.Context, node *goredis.Client) error { return do(node) })
	}
	for try := 0; ; try++ {
		node, err := rdb.MasterForKey(ctx, key)
		if err != nil {
			return err
		}
		err = do(node)
		if err == nil {
			return nil
		}
		s.relocate(ctx)
		if !stale(err) || try == repeats {
			return err
		}
		if err := session.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// relocate finds out anew, in the background, which server holds what: another
// may have taken one's place.
func (s *Store) relocate(ctx context.Context) {
	if rdb, isCluster := s.rdb.(*goredis.ClusterClient); isCluster {
		rdb.ReloadState(ctx)
	}
}

// slots is how many parts of the keys one script cannot reach together.
func (s *Store) slots() int {
	if _, isCluster := s.rdb.(*goredis.ClusterClient); isCluster {
		return shards
	}
	return 1
}

// stale: nothing was done, for the server that was asked is no longer the one.
func stale(err error) bool {
	_, moved := goredis.IsMovedError(err)
	return moved || goredis.IsReadOnlyError(err) || goredis.IsExecAbortError(err)
}
