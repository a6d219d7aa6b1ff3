package redis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// addressForm is how to write an address, for errors.
const addressForm = "write redis://HOST:PORT, unix:///PATH, redis+sentinel://HOST,HOST,HOST/NAME or redis+cluster://HOST,HOST,HOST, and rediss for TLS"

// mode is how the servers behind an address work together.
type mode string

const (
	single   mode = ""
	sentinel mode = "sentinel"
	cluster  mode = "cluster"
)

// address is a parsed URL.
type address struct {
	mode           mode
	tls            bool
	user, password string
	hosts          []string // with their ports; none of a single server
	name           string   // of the primary, by which Sentinels know it
	db             int
	single         *goredis.Options // of a single server
}

// CheckAddress tells whether Open understands a URL, and how to write one. The
// error does not repeat it, for it may hold a password.
func CheckAddress(text string) error {
	_, err := parse(text)
	return err
}

// Password is what a URL holds that must not be shown; empty when it holds none
// or is none of ours.
func Password(text string) string {
	a, err := parse(text)
	if err != nil {
		return ""
	}
	if a.single != nil {
		return a.single.Password
	}
	return a.password
}

// parse reads a URL without ever repeating it, for it may hold a password.
func parse(text string) (address, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	base, kind, _ := strings.Cut(scheme, "+")
	a := address{mode: mode(kind), tls: base == "rediss"}
	if base != "redis" && base != "rediss" && (base != "unix" || kind != "") {
		return address{}, fmt.Errorf("redis.url has a scheme that is not known: %s", addressForm)
	}
	var err error
	switch a.mode {
	case single:
		a.single, err = parseSingle(text)
	case sentinel:
		err = a.parseMany(rest, "26379")
	case cluster:
		err = a.parseMany(rest, "6379")
	default:
		err = fmt.Errorf("redis.url names a kind of servers that is not known: %s", addressForm)
	}
	return a, err
}

func parseSingle(text string) (*goredis.Options, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("redis.url cannot be parsed: %s", addressForm)
	}
	if u.Scheme == "unix" && len(u.Path) > maxSocketPath {
		return nil, fmt.Errorf("redis.url: the socket's path has %d bytes, the system allows %d", len(u.Path), maxSocketPath)
	}
	opts, err := goredis.ParseURL(text)
	if err != nil {
		return nil, fmt.Errorf("redis.url is not understood: %s", addressForm)
	}
	if opts.TLSConfig != nil && opts.TLSConfig.InsecureSkipVerify {
		return nil, errors.New("redis.url: with skip_verify, whoever is in between is taken for the server: name the certificate that it is signed by in redis.ca_file")
	}
	harden(opts)
	return opts, nil
}

// parseMany reads [USER:PASSWORD@]HOST[:PORT],… and, of Sentinels, /NAME[/DB].
// net/url takes one host only.
func (a *address) parseMany(rest, port string) error {
	authority, path, _ := strings.Cut(rest, "/")
	login, hosts := "", authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		login, hosts = authority[:at+1], authority[at+1:]
	}
	u, err := url.Parse("redis://" + login + "host")
	if err != nil {
		return errors.New("redis.url: user and password cannot be parsed: write what is special in them as %XX")
	}
	a.user = u.User.Username()
	a.password, _ = u.User.Password()
	for host := range strings.SplitSeq(hosts, ",") {
		full, err := withPort(host, port)
		if err != nil {
			return err
		}
		a.hosts = append(a.hosts, full)
	}
	return a.parsePath(path)
}

// withPort completes HOST, HOST:PORT, [IPv6] or [IPv6]:PORT.
func withPort(host, port string) (string, error) {
	h, p, err := net.SplitHostPort(host)
	if err != nil {
		h, p = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), port
	}
	n, err := strconv.ParseUint(p, 10, 16)
	u, bad := url.Parse("redis://" + net.JoinHostPort(h, "1"))
	if h == "" || err != nil || n == 0 || bad != nil || u.User != nil || strings.ContainsAny(h, "?#[]") {
		return "", fmt.Errorf("redis.url has a host that cannot be parsed: %s", addressForm)
	}
	return net.JoinHostPort(h, p), nil
}

func (a *address) parsePath(path string) (err error) {
	name, db, _ := strings.Cut(path, "/")
	switch {
	case a.mode == cluster && path == "":
		return nil
	case a.mode == cluster:
		return errors.New("redis.url: a cluster has no databases: write nothing after its hosts")
	case name == "" || strings.ContainsAny(name, "?#"):
		return errors.New("redis.url: which primary? Write the name by which the Sentinels know it: redis+sentinel://HOST,HOST,HOST/NAME")
	}
	if a.name = name; db != "" {
		a.db, err = strconv.Atoi(db)
	}
	if err != nil || a.db < 0 {
		return errors.New("redis.url: the database after the name of the primary is no number")
	}
	return nil
}

// String is where it leads, without who enters.
func (a address) String() string {
	if a.mode == single {
		return a.single.Addr
	}
	return strings.Join(a.hosts, ",")
}

// client makes the client that an address asks for. It does not connect.
func (a address) client(o Options) (goredis.UniversalClient, error) {
	conf, err := o.TLS.config(a.encrypted())
	if err != nil {
		return nil, err
	}
	switch a.mode {
	case sentinel:
		return a.failoverClient(conf, o.SentinelPassword), nil
	case cluster:
		return a.clusterClient(conf), nil
	}
	if conf != nil {
		conf.ServerName = a.single.TLSConfig.ServerName
		a.single.TLSConfig = conf
	}
	return goredis.NewClient(a.single), nil
}

func (a address) encrypted() bool {
	return a.tls || a.single != nil && a.single.TLSConfig != nil
}
