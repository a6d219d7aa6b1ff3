package bot

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// CheckPublic says why a platform, which is called so for people, would deliver
// nothing to an address. It takes https and a public host only.
func CheckPublic(address, platform string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the public address is not one like https://ship.example.com")
	case u.Scheme != "https":
		return fmt.Errorf("the public address does not begin with https, and %s delivers to nothing else", platform)
	case !public(u.Hostname()):
		return fmt.Errorf("%s is not a public host, and %s delivers to nothing else", u.Hostname(), platform)
	}
	return nil
}

// public tells whether others may reach a host, as far as its name says.
func public(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsGlobalUnicast() && !ip.IsPrivate()
	}
	lower := strings.ToLower(strings.TrimRight(host, "."))
	for _, private := range []string{".localhost", ".local", ".internal"} {
		if strings.HasSuffix(lower, private) {
			return false
		}
	}
	return strings.Contains(lower, ".")
}
