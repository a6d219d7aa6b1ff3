package redis

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/session/redis/redistest"
)

// certificate writes one for this machine that signs itself, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "redis of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, "CERTIFICATE", der), writePEM(t, "PRIVATE KEY", text)
}

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTLS: a server that shows its certificate and wants to see the client's.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	port := redistest.Port(t)
	redistest.Start(t, "--bind", "127.0.0.1", "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	foreign, _ := certificate(t)
	url := "rediss://127.0.0.1:" + port
	tests := []struct {
		name, url string
		tls       TLS
		want      string // empty: it opens
	}{
		{"both known", url, TLS{cert, cert, key}, ""},
		{"another authority", url, TLS{foreign, cert, key}, "signed by unknown authority"},
		{"no certificate of its own", url, TLS{CA: cert}, "certificate required"},
		{"the system's authorities", url, TLS{}, "signed by unknown authority"},
		{"no such file", url, TLS{CA: "/nowhere"}, "redis.ca_file"},
		{"no certificate in it", url, TLS{CA: key}, "no certificate"},
		{"without TLS", "redis://127.0.0.1:" + port, TLS{CA: cert}, "rediss"},
		{"sentinels", "rediss+sentinel://127.0.0.1:" + port + "/main", TLS{foreign, cert, key}, "signed by unknown authority"},
		{"cluster", "rediss+cluster://127.0.0.1:" + port, TLS{cert, cert, key}, "cluster support disabled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := Open(t.Context(), Options{URL: test.url, TLS: test.tls})
			for end := time.Now().Add(3 * time.Minute); errors.Is(err, context.DeadlineExceeded) && time.Now().Before(end); {
				s, err = Open(t.Context(), Options{URL: test.url, TLS: test.tls}) // the machine was busy
			}
			if err == nil {
				_ = s.Close()
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: %v; want %q", err, test.want)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"redis+sentinel://a,b:1,[::1]/main":              "a:26379,b:1,[::1]:26379",
		"rediss+sentinel://u:p%40w@a/main/3":             "a:26379",
		"redis+cluster://:pw@10.0.0.1,10.0.0.2:7000":     "10.0.0.1:6379,10.0.0.2:7000",
		"rediss+cluster://u:p@redis-0.redis.svc,b:65535": "redis-0.redis.svc:6379,b:65535",
		"redis://u:p@host/2":                             "host:6379",
		"unix:///run/redis.sock":                         "/run/redis.sock",
	}
	for text, want := range good {
		a, err := parse(text)
		if err != nil || a.String() != want {
			t.Errorf("%s leads to %s, %v; want %s", text, a, err, want)
		}
	}
	for _, text := range []string{
		"redis+sentinel://a,b", "redis+sentinel://a/", "redis+sentinel://a/main/x", "redis+sentinel://a/main/-1", "redis+sentinel:///main",
		"redis+cluster://", "redis+cluster://a,", "redis+cluster://a/0", "redis+cluster://a:0", "redis+cluster://a:99999", "redis+cluster://a?x=y",
		"redis+other://a", "unix+cluster:///a", "http+cluster://a", "redis+cluster://%zz@a", "redis+cluster://a b",
	} {
		if err := CheckAddress(text); err == nil {
			t.Errorf("%s is taken for an address", text)
		}
	}
	a, _ := parse("rediss+sentinel://u:p%40w@a/main/3")
	if a.user != "u" || a.password != "p@w" || a.name != "main" || a.db != 3 || !a.encrypted() {
		t.Errorf("parsed as %+v", a)
	}
	if got := Password("redis+cluster://u:p%40w@a,b"); got != "p@w" {
		t.Errorf("Password = %q", got)
	}
}
