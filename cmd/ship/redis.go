package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"ship/config"
	"ship/session/redis"
)

// RedisSettings say where sessions are kept.
type RedisSettings struct {
	// URL is a secret: it may hold a password.
	URL              config.Secret `yaml:"url" doc:"One server: redis://, rediss:// (TLS) or unix://. With Sentinels: redis+sentinel://HOST,HOST,HOST/NAME. A cluster: redis+cluster://HOST,HOST,HOST. All as …//USER:PASSWORD@… if there is a password, and with rediss for TLS. Empty: the machine's own redis-server is started in data_dir."`
	SentinelPassword config.Secret `yaml:"sentinel_password" doc:"What the Sentinels themselves ask for, if they do."`
	CAFile           string        `yaml:"ca_file" doc:"Certificates (PEM) that a server's must be signed by. Empty: those that the system trusts."`
	CertFile         string        `yaml:"cert_file" doc:"Certificate (PEM) to show to a server that asks for one."`
	KeyFile          string        `yaml:"key_file" doc:"The key (PEM) to cert_file."`
	WaitDisk         bool          `yaml:"wait_disk" doc:"Accept a delivery only when it is on the server's disk, and on those of wait_replicas replicas: for appendfsync everysec. Needs Redis 7.2 or newer."`
	WaitReplicas     int           `yaml:"wait_replicas" default:"0" min:"0" doc:"Accept a delivery only when so many replicas have it, so that it is still there when one of them takes over."`
}

// Validate refuses what is no Redis address, without repeating it, and what
// takes an address to make sense.
func (s RedisSettings) Validate() error {
	if (s.CertFile == "") != (s.KeyFile == "") {
		return config.Invalid("cert_file", "is of no use alone", "set key_file as well, or neither")
	}
	if s.URL.Empty() {
		if s.WaitReplicas > 0 || s.WaitDisk {
			return config.Invalid("wait_replicas", "and wait_disk are not for the embedded server", "set url; the embedded server has no replicas, and writes all to its disk anyway")
		}
		return nil
	}
	if err := redis.CheckAddress(s.URL.Reveal()); err != nil {
		return config.Invalid("url", "is not the address of a Redis", "write it like redis://host:6379/0, rediss://…, unix:///run/redis.sock, redis+sentinel://host,host,host/name or redis+cluster://host,host,host; a certificate of your own is trusted by ca_file, never by skip_verify")
	}
	return nil
}

// options are how the server that is set is opened. The embedded one has an
// address of its own.
func (s RedisSettings) options(log *slog.Logger) redis.Options {
	return redis.Options{
		URL: s.URL.Reveal(), SentinelPassword: s.SentinelPassword.Reveal(),
		TLS:    redis.TLS{CA: s.CAFile, Cert: s.CertFile, Key: s.KeyFile},
		Logger: log,
	}
}

// wait is what the deliveries of platforms wait for. What an operator says need
// not: they see whether it is done.
func (s RedisSettings) wait() redis.Wait {
	return redis.Wait{Disk: s.WaitDisk, Replicas: s.WaitReplicas}
}

// secrets are the texts in there that must not be shown.
func (s RedisSettings) secrets() []string {
	return []string{s.URL.Reveal(), redis.Password(s.URL.Reveal()), s.SentinelPassword.Reveal()}
}

// openRedis opens the server that is set, or starts the machine's own.
func openRedis(ctx context.Context, s Settings, log *slog.Logger, hook func(string)) (*redis.Store, func() error, error) {
	o, stop := s.Redis.options(log), func() error { return nil }
	if o.URL == "" {
		server, err := redis.Embedded(ctx, filepath.Join(s.DataDir, "redis"), log)
		if err != nil {
			return nil, nil, err
		}
		o.URL, stop = server.URL(), server.Close
	}
	o.Wait = s.Redis.wait()
	if hook != nil {
		o.Hook = func(_ context.Context, point string) { hook(point) }
	}
	store, err := redis.Open(ctx, o)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	d, err := store.Durability(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close(), stop())
	}
	log.Info("sessions are kept in redis", "embedded", s.Redis.URL.Empty(), "durability", d.String())
	return store, func() error { return errors.Join(store.Close(), stop()) }, nil
}
