package e2b_test

import (
	"net/http"
	"testing"
	"time"

	"ship/config"
	"ship/sandbox"
	"ship/sandbox/e2b"
	"ship/sandbox/e2b/e2btest"
)

// What a box costs on the stand-in, without the internet in between: the calls
// that a handle, a warm attach and a cold one need.
func BenchmarkBox(b *testing.B) {
	server := e2btest.New(b, e2btest.Options{})
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	p, err := e2b.New(e2b.Config{
		Settings:  e2b.Settings{APIKey: config.NewSecret(e2btest.Key), APIURL: server.URL},
		PublicURL: e2btest.AllowedURL, Key: testKey, Vault: &e2btest.Vault{}, SandboxURL: server.SandboxURL, Transport: transport,
	})
	if err != nil {
		b.Fatal(err)
	}
	fresh := func(b *testing.B) (string, sandbox.Box) {
		b.Helper()
		info, err := p.Create(b.Context(), sandbox.Spec{Key: "bench", TTL: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		box, err := p.Attach(b.Context(), info.ID, time.Minute)
		if err != nil {
			b.Fatal(err)
		}
		return info.ID, box
	}
	id, box := fresh(b)
	if _, err := box.Spawn(b.Context(), sandbox.Command{Name: "p", Args: []string{"true"}}); err != nil {
		b.Fatal(err)
	}
	b.Run("process", func(b *testing.B) {
		for b.Loop() {
			if _, err := box.Process(b.Context(), "p"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("attach", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Attach(b.Context(), id, time.Second); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			if err := p.Destroy(b.Context(), id); err != nil {
				b.Fatal(err)
			}
			id, _ = fresh(b)
		}
	})
}
