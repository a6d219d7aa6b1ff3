package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"ship/sandbox"
)

// bridge carries what a process in the box asks of the broker to it. The turn's
// token is read anew for every request, so that a new turn needs nothing but a
// new token file; what the caller calls itself is not passed on.
type bridge struct {
	files *files
	proxy *httputil.ReverseProxy
	// target is the broker, and upgrades carries what becomes a tunnel: HTTP/2
	// has no such thing.
	target   *url.URL
	upgrades http.RoundTripper
}

func newBridge(broker string, files *files) (*bridge, error) {
	target, transport, err := route(broker)
	if err != nil {
		return nil, fmt.Errorf("the broker's address %q: %w", broker, err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		// At once: answers are streams of a model, and packs of git.
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler:  away,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	upgrades := transport.Clone()
	upgrades.Protocols = new(http.Protocols)
	upgrades.Protocols.SetHTTP1(true)
	upgrades.ForceAttemptHTTP2 = false
	return &bridge{files: files, proxy: proxy, target: target, upgrades: upgrades}, nil
}

// errNoBroker is why a box without a broker answers as if it were away.
var errNoBroker = errors.New("this box has no broker")

// route is where requests go, and how they get there.
func route(broker string) (*url.URL, *http.Transport, error) {
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}
	path, isUnix := strings.CutPrefix(broker, "unix:")
	if !isUnix && broker != "" {
		target, err := url.Parse(broker)
		if err == nil && (target.Host == "" || target.Scheme != "http" && target.Scheme != "https") {
			err = errors.New("neither unix:PATH nor an http or https URL")
		}
		transport.ForceAttemptHTTP2 = true
		return target, transport, err
	}
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		if path == "" {
			return nil, errNoBroker
		}
		return DialUnix(ctx, path)
	}
	return &url.URL{Scheme: "http", Host: "broker"}, transport, nil
}

func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A proxy may be about to look whether the request has ended when the answer
	// begins; closed to it then, it would cut the answer off.
	_ = http.NewResponseController(w).EnableFullDuplex()
	token, err := b.files.read(sandbox.TokenPath, 0)
	if err != nil {
		http.Error(w, "ship: this box has no turn at the moment", http.StatusBadGateway)
		return
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if r.Method == http.MethodConnect {
		b.tunnel(w, r)
		return
	}
	if isProxied(r) {
		plain(r)
	}
	b.proxy.ServeHTTP(w, r)
}

// away answers when the broker cannot be reached: the gateway is down or just
// starts again.
func away(w http.ResponseWriter, _ *http.Request, _ error) {
	http.Error(w, "ship: the broker is away, try again in a moment", http.StatusBadGateway)
}
