package local_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/broker"
	"ship/sandbox/guest"
	"ship/sandbox/local"
)

// outside is what lies beyond a box: a broker, and an internet of one server,
// which is all of example.com.
type outside struct {
	broker *broker.Broker
	signer *broker.Signer
	web    *httptest.Server
	// open is the same without TLS.
	open *httptest.Server
	// held says that somebody asks for /hold.
	held chan struct{}
}

// accounts are a ledger that lasts as long as the test.
type accounts struct {
	mu  sync.Mutex
	all map[string]broker.Usage
}

func (a *accounts) Spend(_ context.Context, name string, u broker.Usage) (broker.Usage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.all[name]
	t.Calls, t.Input, t.Output, t.USD = t.Calls+u.Calls, t.Input+u.Input, t.Output+u.Output, t.USD+u.USD
	a.all[name] = t
	return t, nil
}

func (a *accounts) Totals(_ context.Context, names ...string) ([]broker.Usage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var totals []broker.Usage
	for _, name := range names {
		totals = append(totals, a.all[name])
	}
	return totals, nil
}

// LookupNetIP knows example.com and what is below it.
func (o *outside) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if !strings.HasSuffix("."+host, ".example.com.") {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if host == "inside.example.com." {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

func (o *outside) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	server := map[string]*httptest.Server{"93.184.216.34:443": o.web, "93.184.216.34:80": o.open}[to.String()]
	if server == nil {
		return nil, errors.New("nobody is there")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
}

func (o *outside) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/hold":
		_ = http.NewResponseController(w).Flush()
		o.held <- struct{}{}
		<-r.Context().Done()
	case "/greeter":
		_ = json.NewEncoder(w).Encode(greeter())
	case "/greeter.tgz":
		_, _ = w.Write(tarball())
	default:
		_, _ = fmt.Fprintf(w, "%s %s", r.Host, r.URL.Path)
	}
}

// goOutside opens a broker on a socket in dir.
func goOutside(t *testing.T, dir string) *outside {
	t.Helper()
	o := &outside{held: make(chan struct{})}
	o.web, o.open = httptest.NewUnstartedServer(http.HandlerFunc(o.serve)), httptest.NewServer(http.HandlerFunc(o.serve))
	o.web.Config.ErrorLog = log.New(io.Discard, "", 0)
	o.web.StartTLS()
	t.Cleanup(o.open.Close)
	t.Cleanup(o.web.Close)
	hosts, err := broker.ParseHosts([]string{"*.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if o.signer, err = broker.NewSigner(make([]byte, broker.KeySize)); err != nil {
		t.Fatal(err)
	}
	o.broker, err = broker.New(broker.Config{
		Signer: o.signer, Ledger: &accounts{all: map[string]broker.Usage{}},
		Egress: broker.Egress{Hosts: hosts, Resolver: o, Dial: o.dial},
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := guest.ListenUnix(filepath.Join(dir, "broker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: o.broker}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return o
}

// begin gives a box the token of a turn.
func (o *outside) begin(t *testing.T, box sandbox.Box, session string) {
	t.Helper()
	token, err := o.signer.Sign(broker.Grant{Session: session, Turn: "1", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Write(t.Context(), sandbox.TokenPath, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.web.Certificate().Raw})
	if err := box.Write(t.Context(), "/work/ca.pem", certificate, 0o644); err != nil {
		t.Fatal(err)
	}
}

// proxied is a command that is told of the proxy, and whom to trust.
func proxied(name string, args ...string) sandbox.Command {
	env := append(broker.ProxyEnvironment(sandbox.BrokerURL), "SSL_CERT_FILE=/work/ca.pem", "CURL_CA_BUNDLE=/work/ca.pem",
		"npm_config_cafile=/work/ca.pem", "npm_config_registry=https://registry.example.com/", "npm_config_update_notifier=false", "npm_config_fetch_retries=0")
	return sandbox.Command{Name: name, Args: args, Env: env, Dir: sandbox.WorkDir}
}

func execute(t *testing.T, box sandbox.Box, cmd sandbox.Command) (int, string) {
	t.Helper()
	out, err := sandbox.Exec(t.Context(), box, cmd)
	if err != nil {
		t.Fatalf("Exec(%s): %v", cmd.Name, err)
	}
	return out.ExitCode, string(out.Data)
}

// TestEgress goes out of a box by name, with the programs that people use.
func TestEgress(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := t.TempDir()
	o := goOutside(t, dir)
	p := open(t, local.Config{Broker: dir})
	_, box := create(t, p)
	o.begin(t, box, "one")

	for name, c := range map[string]struct {
		url, want string
		code      int
	}{
		"https":   {"https://www.example.com/a?b", "200 www.example.com /a", 0},
		"http":    {"http://www.example.com/a?b", "200 www.example.com /a", 0},
		"self":    {"http://127.0.0.1:4010/broker/model/x", "404 ", 0},
		"refused": {"https://evil.example.net/", "ship: evil.example.net:443 is not among the hosts that boxes may reach", 1},
		"bare":    {"https://example.com/", "ship: example.com:443 is not among", 1},
		"private": {"https://inside.example.com/", "ship: inside.example.com has no public address", 1},
		"clear":   {"http://evil.example.net/", "403 ship: evil.example.net:80 is not among", 0},
	} {
		code, said := execute(t, box, proxied("get-"+name, inBox, "get", c.url))
		if code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit %d, %q, want %q", name, code, said, c.want)
		}
	}
	t.Run("curl", func(t *testing.T) { o.curl(t, box) })
	t.Run("npm", func(t *testing.T) { o.npm(t, box) })
	t.Run("end", func(t *testing.T) { o.end(t, box) })
}

func (o *outside) curl(t *testing.T, box sandbox.Box) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	code, said := execute(t, box, proxied("curl", "curl", "-sS", "https://www.example.com/x", "http://www.example.com/y", "https://www.example.org/"))
	if code == 0 || !strings.HasPrefix(said, "www.example.com /xwww.example.com /y") || !strings.Contains(said, "403") {
		t.Errorf("exit %d, %q", code, said)
	}
}

// npm installs a package from a registry that stands in for the real one.
func (o *outside) npm(t *testing.T, box sandbox.Box) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	code, said := execute(t, box, proxied("npm", "sh", "-c",
		"mkdir -p /work/app && cd /work/app && npm init -y >/dev/null && npm install --no-audit --no-fund greeter && node -p 'require(\"greeter\")'"))
	if code != 0 || !strings.HasSuffix(said, "hello from a package\n") {
		t.Errorf("exit %d, %s", code, said)
	}
}

// end: when a turn has ended its tunnels are cut, and its token opens no other.
func (o *outside) end(t *testing.T, box sandbox.Box) {
	if _, err := box.Spawn(t.Context(), proxied("hold", inBox, "get", "https://www.example.com/hold")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-o.held:
	case <-time.After(patience):
		t.Fatal("nobody asked")
	}
	if err := o.broker.End(t.Context(), "one", "1"); err != nil {
		t.Fatal(err)
	}
	await(t, "the tunnel is cut", func() bool {
		p, err := box.Process(t.Context(), "hold")
		return err == nil && !p.Running && p.ExitCode == 1
	})
	code, said := execute(t, box, proxied("after", inBox, "get", "https://www.example.com/"))
	if code == 0 || !strings.Contains(said, "ship: this turn has ended") {
		t.Errorf("with the old token: exit %d, %q", code, said)
	}
	o.begin(t, box, "two")
	if code, said := execute(t, box, proxied("next", inBox, "get", "https://www.example.com/")); code != 0 {
		t.Errorf("with the next token: exit %d, %q", code, said)
	}
}

// greeter is what a registry says of a package.
func greeter() any {
	sum := sha512.Sum512(tarball())
	version := map[string]any{"name": "greeter", "version": "1.0.0", "dist": map[string]any{
		"tarball":   "https://registry.example.com/greeter.tgz",
		"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
	}}
	return map[string]any{"name": "greeter", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": version}}
}

func tarball() []byte {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	for _, f := range [][2]string{
		{"package/package.json", `{"name": "greeter", "version": "1.0.0", "main": "index.js"}`},
		{"package/index.js", `module.exports = "hello from a package"`},
	} {
		_ = archive.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))})
		_, _ = io.WriteString(archive, f[1])
	}
	_, _ = archive.Close(), zip.Close()
	return b.Bytes()
}
