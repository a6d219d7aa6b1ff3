package guest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The bridge is also what programs in the box know as an HTTP proxy. What they
// ask for is passed on as it was written, in a header of a request that any
// proxy on the way understands; whether it is allowed, the broker decides.
const (
	tunnelPath     = "/broker/egress/tunnel"
	fetchPath      = "/broker/egress/http"
	targetHeader   = "Ship-Target"
	tunnelProtocol = "ship-egress"
)

// isProxied tells what is for somebody else from what is for the broker itself,
// which some clients ask of the proxy too.
func isProxied(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return r.URL.Host != "" && (!ok || r.URL.Host != address.String())
}

// plain makes a request to a proxy for an http address one to the broker.
func plain(r *http.Request) {
	r.Header.Set(targetHeader, r.RequestURI)
	r.URL, r.Host = &url.URL{Path: fetchPath}, ""
}

// tunnel answers CONNECT.
func (b *bridge) tunnel(w http.ResponseWriter, r *http.Request) {
	response, err := b.askTunnel(r)
	if err != nil {
		away(w, r, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	box, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "ship: no tunnel can be made of this request", http.StatusInternalServerError)
		return
	}
	defer func() { _ = box.Close() }()
	_ = box.SetDeadline(time.Time{})
	broker, ok := response.Body.(io.ReadWriteCloser)
	if response.StatusCode != http.StatusSwitchingProtocols || !ok {
		refuseTunnel(box, response)
		return
	}
	if _, err := io.WriteString(box, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		through(&conn{Conn: box, buffered: buffered.Reader}, broker)
	}
}

func (b *bridge) askTunnel(r *http.Request) (*http.Response, error) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, b.target.JoinPath(tunnelPath).String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", r.Header.Get("Authorization"))
	request.Header.Set(targetHeader, r.RequestURI)
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", tunnelProtocol)
	return b.upgrades.RoundTrip(request)
}

// refuseTunnel says why not in the status line too: most clients show nothing
// else of such an answer.
func refuseTunnel(box net.Conn, response *http.Response) {
	line, _ := bufio.NewReader(io.LimitReader(response.Body, 1<<10)).ReadString('\n')
	line = strings.Map(printable, strings.TrimSpace(line))
	status := max(response.StatusCode, http.StatusBadRequest) // nobody may take it for a tunnel
	_, _ = fmt.Fprintf(box, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, line, len(line)+1, line)
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// through copies both ways until the far side has ended. What the box ends, the
// far side may still answer.
func through(box *conn, far io.ReadWriteCloser) {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, err := io.Copy(far, box)
		half, ok := far.(interface{ CloseWrite() error })
		if err != nil || !ok || half.CloseWrite() != nil {
			_ = far.Close()
		}
	}()
	_, _ = io.Copy(box.Conn, far)
	_, _ = box.Close(), far.Close()
	<-sent
}
