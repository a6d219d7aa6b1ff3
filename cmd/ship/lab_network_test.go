package main

import (
	"context"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// network is the network between one ship and Redis.
type network struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// newNetwork leads to a port of this machine.
func newNetwork(t testing.TB, port string) *network {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	w := &network{t: t, proxy: toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", "127.0.0.1:"+port)}
	if err := w.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.proxy.Stop)
	return w
}

func (w *network) addr() string { return w.proxy.Listen }

// cut drops all connections and refuses others.
func (w *network) cut() { w.proxy.Stop() }

// spoil does to what comes back, or with "upstream" to what is sent, what
// toxiproxy calls by a name: latency and jitter in milliseconds, or a timeout
// of 0, with which nothing arrives and nobody is told.
func (w *network) spoil(stream, kind, attributes string) {
	_, err := w.proxy.Toxics.AddToxicJson(strings.NewReader(
		`{"name":"` + kind + stream + `","stream":"` + stream + `","type":"` + kind + `","attributes":{` + attributes + `}}`))
	if err != nil {
		w.t.Errorf("spoil the network: %v", err)
	}
}

// mend ends all of that. What hangs in connections is dropped with them.
func (w *network) mend() {
	w.proxy.Stop()
	w.proxy.Toxics.ResetToxics(context.Background())
	if err := w.proxy.Start(); err != nil {
		w.t.Errorf("mend the network: %v", err)
	}
}
