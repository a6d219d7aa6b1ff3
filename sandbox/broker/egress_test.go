package broker

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// world is the internet as a test knows it: names, and what listens at their
// addresses.
type world struct {
	t *testing.T

	mu    sync.Mutex
	names map[string][]string
	// asked counts the lookups of a name, dialled are the addresses that were
	// connected to.
	asked   map[string]int
	dialled []string
	// places are real addresses of servers, by the address that they play.
	places   map[string]string
	passages chan Passage
}

func newWorld(t *testing.T) *world {
	return &world{t: t, names: map[string][]string{}, asked: map[string]int{}, places: map[string]string{}, passages: make(chan Passage, 1000)}
}

func (w *world) Passed(p Passage) { w.passages <- p }

// LookupNetIP answers with the address whose turn it is when a name is written
// as "a then b", so that a second look finds another.
func (w *world) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if network != "ip" || !strings.HasSuffix(host, ".") {
		w.t.Errorf("looked up %q in %q", host, network)
	}
	name := strings.TrimSuffix(host, ".")
	turn := w.asked[name]
	w.asked[name]++
	answers := w.names[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var all []netip.Addr
	for a := range strings.FieldsSeq(answers[min(turn, len(answers)-1)]) {
		all = append(all, netip.MustParseAddr(a))
	}
	return all, nil
}

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, to.String())
	place := w.places[to.String()]
	w.mu.Unlock()
	if place == "" {
		return nil, errors.New("nobody is there")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", place)
}

func (w *world) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dialled
}

// publicIP is where the tests' servers claim to be.
const publicIP = "93.184.216.34"

// egressBench is a bench with a world around it. In it, example.com and all
// below have a server for https, and one for http.
type egressBench struct {
	*bench
	world *world
	roots *x509.CertPool
}

func newEgressBench(t *testing.T, c Egress, h http.HandlerFunc) *egressBench {
	t.Helper()
	w := newWorld(t)
	secure, open := httptest.NewUnstartedServer(h), httptest.NewServer(h)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	t.Cleanup(open.Close)
	for _, name := range []string{"example.com", "www.example.com", "allowed.example.com"} {
		w.names[name] = []string{publicIP}
	}
	w.places[publicIP+":443"] = secure.Listener.Addr().String()
	w.places[publicIP+":80"] = open.Listener.Addr().String()
	c.Resolver, c.Dial, c.Observer = w, w.dial, w
	if c.Hosts.Empty() {
		c.Hosts = mustHosts(t, "example.com", "*.example.com")
	}
	b := &egressBench{bench: newBench(t, Config{Egress: c}), world: w, roots: x509.NewCertPool()}
	b.roots.AddCert(secure.Certificate())
	return b
}

// ask sends a request for a tunnel, and returns the connection with the answer.
func (b *egressBench) ask(token, to string) (net.Conn, *http.Response) {
	b.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		b.Fatal(err)
	}
	fmt.Fprintf(c, "GET /broker/egress/tunnel HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer %s\r\n"+
		"Ship-Target: %s\r\nConnection: Upgrade\r\nUpgrade: ship-egress\r\n\r\n", token, to)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		b.Fatal(err)
	}
	return &buffer{Conn: c, r: r}, resp
}

// open returns a tunnel.
func (b *egressBench) open(g Grant, to string) net.Conn {
	b.Helper()
	c, resp := b.ask(b.token(g), to)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		b.Fatalf("%s: %s %s", to, resp.Status, text(b.T, resp))
	}
	return c
}

// secure begins TLS in a tunnel. The servers' certificate is for example.com
// and *.example.com.
func (b *egressBench) secure(c net.Conn, name string) (*tls.Conn, error) {
	s := tls.Client(c, &tls.Config{ServerName: name, RootCAs: b.roots})
	return s, s.Handshake()
}

func get(c net.Conn, path string) (string, error) {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n", path); err != nil {
		return "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func (b *egressBench) next() Passage {
	b.Helper()
	select {
	case p := <-b.world.passages:
		return p
	case <-time.After(patience):
		b.Fatal("no passage was told of")
		return Passage{}
	}
}

// slack is long beside what a tunnel and a request through it take here and now,
// and short otherwise: what a test waits for that needs a limit to pass, after it
// has begun.
func slack(t *testing.T) time.Duration {
	t.Helper()
	b := newEgressBench(t, Egress{}, hello)
	begin := time.Now()
	c, err := b.secure(b.open(testGrant(), "www.example.com:443"), "www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(c, "/"); err != nil {
		t.Fatal(err)
	}
	return 300*time.Millisecond + 10*time.Since(begin)
}

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello ", r.URL.Path) }

func TestTunnel(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{}, hello)
	c, err := b.secure(b.open(testGrant(), "WWW.example.com.:443"), "www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := get(c, "/secret-path"); got != "hello /secret-path" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	c.Close()
	p := b.next()
	if p.Rule != "*.example.com" || p.Outcome != "ok" || p.In < 500 || p.Out < 200 {
		t.Errorf("told of %+v: %s", p, b.log)
	}
	if diff := cmp.Diff([]string{publicIP + ":443"}, b.world.calls()); diff != "" {
		t.Error(diff)
	}
	b.ledger.mu.Lock()
	u := b.ledger.accounts[egressAccount(testGrant().account())]
	b.ledger.mu.Unlock()
	if u.Calls != 1 || int64(u.Input) != p.In || int64(u.Output) != p.Out {
		t.Errorf("the ledger has %+v, want %+v", u, p)
	}
	log := b.log.String()
	if !strings.Contains(log, "host=www.example.com") || !strings.Contains(log, "session=gh.1.2") || strings.Contains(log, "secret-path") {
		t.Errorf("log: %s", log)
	}
}

// TestTunnelHalfClosed: a client that has no more to say still gets its answer.
func TestTunnelHalfClosed(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	b := newEgressBench(t, Egress{}, func(w http.ResponseWriter, _ *http.Request) {
		<-asked
		fmt.Fprint(w, "late")
	})
	raw := b.open(testGrant(), "www.example.com:443")
	c, err := b.secure(raw, "www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
	if err := raw.(*buffer).Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	close(asked)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, resp); got != "late" {
		t.Errorf("got %q", got)
	}
	if p := b.next(); p.Outcome != "ok" {
		t.Errorf("told of %+v", p)
	}
}

func TestTunnelRefused(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{Hosts: mustHosts(t, "*.example.com", "evil.example.net", "93.184.216.34", "1.0.0.1")}, hello)
	for name, addresses := range map[string]string{
		"loop.example.com": "127.0.0.1", "six.example.com": "::1 fd00::1", "meta.example.com": "169.254.169.254",
		"mapped.example.com": "::ffff:10.0.0.1", "nat.example.com": "64:ff9b::a00:1", "old.example.com": "2002:a00:1::1",
	} {
		b.world.names[name] = []string{addresses}
	}
	for to, want := range map[string]string{
		"registry.npmjs.org:443":           "403 ship: registry.npmjs.org:443 is not among",
		"example.com:443":                  "403 ship: example.com:443 is not among",
		"www.example.com:22":               "403 ship: www.example.com:22 is not among",
		"www.example.com.evil.com:443":     "403 ship: www.example.com.evil.com:443 is not among",
		"www.example.com@evil.com:443":     `400 ship: "www.example.com@evil.com:443" is not the name`,
		"127.0.0.1:443":                    "403 ship: 127.0.0.1:443 is not among",
		"127.1:443":                        `400 ship: "127.1:443" is neither`,
		"[::ffff:127.0.0.1]:443":           "403 ship: 127.0.0.1:443 is not among",
		"b\u00fccher.example.com:443":      `400 ship: "b\u00fccher.example.com:443" is not ASCII`,
		"http://www.example.com/":          `400 ship: "http://www.example.com/" is not`,
		"":                                 `400 ship: "" is not HOST:PORT`,
		"loop.example.com:443":             "403 ship: loop.example.com has no public address",
		"six.example.com:443":              "403 ship: six.example.com has no public address",
		"meta.example.com:80":              "403 ship: meta.example.com has no public address",
		"mapped.example.com:443":           "403 ship: mapped.example.com has no public address",
		"nat.example.com:443":              "403 ship: nat.example.com has no public address",
		"old.example.com:443":              "403 ship: old.example.com has no public address",
		"missing.example.com:443":          "502 ship: missing.example.com cannot be found",
		"1.0.0.1:443":                      "502 ship: 1.0.0.1:443 does not answer",
		strings.Repeat("long", 500) + ":4": `400 ship: "longlong`,
	} {
		_, resp := b.ask(b.token(testGrant()), to)
		if got := fmt.Sprint(resp.StatusCode, " ", text(t, resp)); !strings.HasPrefix(got, want) || len(got) > 250 {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
		if p := b.next(); strings.Contains(p.Rule, "evil") || p.Outcome == "ok" || p.In+p.Out != 0 {
			t.Errorf("%s: told of %+v", to, p)
		}
	}
	if diff := cmp.Diff([]string{"1.0.0.1:443"}, b.world.calls()); diff != "" {
		t.Errorf("connections were made: %s", diff)
	}
	if strings.Contains(text(t, b.do(testGrant(), "GET", "/broker/egress/other", "")), "public") {
		t.Error("there is something at /broker/egress/other")
	}
}

// TestRebinding: a name that is public when it is checked and private when it
// is asked for again is looked up once, and the address that was checked is
// the one that is dialled.
func TestRebinding(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{}, hello)
	b.world.names["www.example.com"] = []string{"10.0.0.7 " + publicIP + " 127.0.0.1", "127.0.0.1"}
	c, err := b.secure(b.open(testGrant(), "www.example.com:443"), "www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := get(c, "/"); got != "hello /" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	c.Close()
	b.next()
	_, resp := b.ask(b.token(testGrant()), "www.example.com:443")
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("rebound: %s", resp.Status)
	}
	if diff := cmp.Diff([]string{publicIP + ":443"}, b.world.calls()); diff != "" {
		t.Error(diff)
	}
}

// TestOwnAddress: this machine is not reached at its public address either.
func TestOwnAddress(t *testing.T) {
	t.Parallel()
	own := func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP(publicIP), Mask: net.CIDRMask(24, 32)}}, nil
	}
	b := newEgressBench(t, Egress{Interfaces: own}, hello)
	if _, resp := b.ask(b.token(testGrant()), "www.example.com:443"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestSecondAddress: a host whose first address is dead is reached at the next.
func TestSecondAddress(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{}, hello)
	b.world.names["www.example.com"] = []string{"1.0.0.1 ::ffff:1.0.0.1 " + publicIP}
	if _, err := b.secure(b.open(testGrant(), "www.example.com:443"), "www.example.com"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1.0.0.1:443", publicIP + ":443"}, b.world.calls()); diff != "" {
		t.Error(diff)
	}
}

func TestTunnelGreeting(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{}, hello)
	_, err := b.secure(b.open(testGrant(), "allowed.example.com:443"), "www.example.com")
	if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("another name: %v", err)
	}
	if p := b.next(); p.Outcome != codeHello || p.Out != 0 {
		t.Errorf("another name: told of %+v", p)
	}
	for what, first := range map[string]string{
		"http": "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n", "ssh": "SSH-2.0-OpenSSH_9.6\r\n", "noise": "\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00",
	} {
		c := b.open(testGrant(), "www.example.com:443")
		if _, err := io.WriteString(c, first); err != nil {
			t.Fatal(err)
		}
		if said, _ := io.ReadAll(c); len(said) != 0 {
			t.Errorf("%s: %q came back", what, said)
		}
		if p := b.next(); p.Outcome != codeHello || p.Out != 0 {
			t.Errorf("%s: told of %+v", what, p)
		}
	}
	b.open(testGrant(), "www.example.com:443").Close()
	if p := b.next(); p.Outcome != "ok" || p.Out != 0 {
		t.Errorf("who said nothing: told of %+v", p)
	}
}

// TestTunnelTokens: what other doors refuse, this one does too.
func TestTunnelTokens(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{}, hello)
	expired, other := testGrant(), testGrant()
	expired.Expires = time.Now().Add(-time.Second)
	other.Session = "gh.9.9"
	forger, err := NewSigner(bytes.Repeat([]byte{8}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := forger.Sign(testGrant())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.broker.End(t.Context(), other.Session, other.Turn); err != nil {
		t.Fatal(err)
	}
	for what, token := range map[string]string{"none": "", "forged": forged, "expired": b.token(expired), "ended": b.token(other)} {
		if _, resp := b.ask(token, "www.example.com:443"); resp.StatusCode/100 != 4 {
			t.Errorf("%s: status %d", what, resp.StatusCode)
		}
	}
	if b.world.calls() != nil {
		t.Errorf("connections were made: %v", b.world.calls())
	}
	b.open(testGrant(), "www.example.com:443") // that another turn has ended is nothing to this one
}

// holding keeps its answers open.
func holding(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, "begun")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestTunnelEndsWithTurn(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{}, holding)
	g, other := testGrant(), testGrant()
	other.Session = "gh.9.9"
	first, err := b.secure(b.open(g, "www.example.com:443"), "www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.secure(b.open(other, "www.example.com:443"), "www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.broker.End(t.Context(), g.Session, g.Turn); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, first); n != 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if p := b.next(); p.Outcome != codeEnded {
		t.Errorf("told of %+v", p)
	}
	if _, err := io.WriteString(second, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"); err != nil {
		t.Error(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(second), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("another session's tunnel: %v, %v", resp, err)
	}
}

func TestTunnelLimits(t *testing.T) {
	t.Parallel()
	soon := slack(t)
	for what, c := range map[string]struct {
		egress Egress
		lives  time.Duration // of the grant
		want   string
	}{
		"idle":    {Egress{IdleTimeout: soon}, time.Hour, codeTimeout},
		"life":    {Egress{MaxTime: soon}, time.Hour, codeTimeout},
		"expired": {Egress{}, soon, codeExpired},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newEgressBench(t, c.egress, holding)
			g := testGrant()
			g.Expires = time.Now().Add(c.lives)
			tunnel, err := b.secure(b.open(g, "www.example.com:443"), "www.example.com")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, tunnel)
			if p := b.next(); p.Outcome != c.want {
				t.Errorf("told of %+v, want %s", p, c.want)
			}
		})
	}
}

func TestTunnelCount(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{MaxConns: 2}, holding)
	one := b.open(testGrant(), "www.example.com:443")
	b.open(testGrant(), "www.example.com:443")
	if _, resp := b.ask(b.token(testGrant()), "www.example.com:443"); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a third: %s", resp.Status)
	}
	other := testGrant()
	other.Session = "gh.9.9"
	b.open(other, "www.example.com:443")
	b.next() // the third
	one.Close()
	b.next()
	b.open(testGrant(), "www.example.com:443")
}

func TestTraffic(t *testing.T) {
	t.Parallel()
	const size = 20 << 20
	b := newEgressBench(t, Egress{MaxBytes: 12 << 20}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(zero{}, size))
	})
	c, err := b.secure(b.open(testGrant(), "www.example.com:443"), "www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := get(c, "/"); err == nil {
		t.Errorf("%d bytes came through", len(got))
	}
	p := b.next()
	if p.Outcome != codeTraffic || p.In < 11<<20 || p.In > 13<<20 {
		t.Errorf("told of %+v", p)
	}
	if _, resp := b.ask(b.token(testGrant()), "www.example.com:443"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("after that: %s", resp.Status)
	}
	next := testGrant()
	next.Turn = "4"
	b.open(next, "www.example.com:443")
}

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestTunnelWithoutLedger: what cannot be counted is not let through.
func TestTunnelWithoutLedger(t *testing.T) {
	t.Parallel()
	b := newEgressBench(t, Egress{}, hello)
	b.ledger.mu.Lock()
	b.ledger.down = true
	b.ledger.mu.Unlock()
	if _, resp := b.ask(b.token(testGrant()), "www.example.com:443"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestNoEgress(t *testing.T) {
	t.Parallel()
	b := &egressBench{bench: newBench(t, Config{})}
	_, resp := b.ask(b.token(testGrant()), "registry.npmjs.org:443")
	if got := text(t, resp); resp.StatusCode != http.StatusForbidden || !strings.Contains(got, "no network here") {
		t.Errorf("%d %q", resp.StatusCode, got)
	}
}
