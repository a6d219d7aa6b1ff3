package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	// resolveTimeout and dialTimeout bound the way to one address.
	resolveTimeout = 10 * time.Second
	dialTimeout    = 5 * time.Second
	// maxAddresses of a name that are tried.
	maxAddresses = 4
)

// closed are the networks that no box reaches, by whatever name: the special
// purpose registries of IANA (RFC 6890 and what updates it), every form in
// which an IPv4 address hides in an IPv6 one, and one address of a cloud. Of
// IPv6 only 2000::/3 is open at all.
func closed() []string {
	return []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		// What Azure's machines ask for their metadata and credentials.
		"168.63.129.16/32",
		// Teredo, ORCHID and their kin; documentation; 6to4; documentation.
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	}
}

// isPublic says that an address is one of the open internet.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || a.Is6() && !netip.MustParsePrefix("2000::/3").Contains(a) {
		return false
	}
	return !slices.ContainsFunc(closed(), func(p string) bool { return netip.MustParsePrefix(p).Contains(a) })
}

// addresses looks a target up, once. What it returns was checked, and is what
// is dialled: a second look could find another address.
func (e *egress) addresses(ctx context.Context, t target) ([]netip.Addr, error) {
	found := []netip.Addr{t.addr}
	if !t.addr.IsValid() {
		ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
		defer cancel()
		var err error
		// With a dot at the end, so that no search domain is appended.
		if found, err = e.resolver.LookupNetIP(ctx, "ip", t.host+"."); err != nil {
			return nil, refuse(http.StatusBadGateway, codeUnreachable, "%s cannot be found", t.host).because(err)
		}
	}
	own, err := e.interfaces()
	if err != nil {
		return nil, fmt.Errorf("look up our own addresses: %w", err)
	}
	var open []netip.Addr
	for _, a := range found {
		if a = a.Unmap(); isPublic(a) && !isOurs(own, a) && !slices.Contains(open, a) {
			open = append(open, a)
		}
	}
	if len(open) == 0 {
		return nil, refuse(http.StatusForbidden, codeAddress, "%s has no public address", t.host).
			because(fmt.Errorf("it has %v", found))
	}
	return open[:min(len(open), maxAddresses)], nil
}

// isOurs: this machine may have public addresses, and serve on them what is not
// meant for boxes.
func isOurs(own []net.Addr, a netip.Addr) bool {
	return slices.ContainsFunc(own, func(addr net.Addr) bool {
		p, err := netip.ParsePrefix(addr.String())
		return err == nil && p.Addr().Unmap() == a
	})
}

// dial connects to a target at an address that was checked.
func (e *egress) dial(ctx context.Context, t target) (net.Conn, error) {
	addresses, err := e.addresses(ctx, t)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, a := range addresses {
		conn, err := e.dialOne(ctx, netip.AddrPortFrom(a, t.port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, refuse(http.StatusBadGateway, codeUnreachable, "%s does not answer", t).because(errors.Join(errs...))
}

func (e *egress) dialOne(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return e.connect(ctx, to)
}

// connectTCP is what connects unless Egress.Dial is set.
func connectTCP(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", to.String())
}
