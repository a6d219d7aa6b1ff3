package broker

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Hosts are the rules of what boxes may reach by name. The zero value allows
// nothing.
type Hosts struct{ rules []hostRule }

// hostRule allows one host, or all below one.
type hostRule struct {
	// text is the rule as it was normalised: what metrics call it.
	text string
	// name is compared whole, or as the end after a label and a dot if below.
	name  string
	below bool
	// port is zero for the two of the web.
	port uint16
}

// presetRegistries is the word that stands for Registries.
const presetRegistries = "registries"

// Registries are the rules that the word "registries" stands for: where the
// package managers of common languages and systems fetch from. Hosts that
// anybody can fill, such as github.com or storage.googleapis.com, are not among
// them. What each of these lets out is in docs/sandbox.md.
func Registries() []string {
	return []string{
		// JavaScript: npm, pnpm and Yarn; the headers that node-gyp builds with.
		"registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org",
		// Python.
		"pypi.org", "files.pythonhosted.org",
		// Rust: the index and the crates, not crates.io, which takes uploads.
		"index.crates.io", "static.crates.io", "static.rust-lang.org",
		// Go.
		"proxy.golang.org", "sum.golang.org",
		// Ruby.
		"rubygems.org", "index.rubygems.org",
		// Java.
		"repo1.maven.org", "repo.maven.apache.org", "plugins.gradle.org", "services.gradle.org",
		// Debian, Ubuntu and Alpine.
		"deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com", "dl-cdn.alpinelinux.org",
	}
}

// ParseHosts reads rules: "registry.npmjs.org" is that host, "*.example.com"
// every host below example.com but not itself, both on ports 443 and 80;
// "example.com:8443" is that port only. An address has to be written out, and
// to be public. "registries" stands for Registries. The error names every rule
// that is wrong.
func ParseHosts(list []string) (Hosts, error) {
	var h Hosts
	var errs []error
	for _, text := range list {
		texts := []string{text}
		if text == presetRegistries {
			texts = Registries()
		}
		for _, text := range texts {
			rule, err := parseHostRule(text)
			if err != nil {
				errs = append(errs, fmt.Errorf("%q %w", text, err))
			} else if !slices.Contains(h.rules, rule) {
				h.rules = append(h.rules, rule)
			}
		}
	}
	// The narrow ones first, so that a name is always found by the same rule.
	slices.SortStableFunc(h.rules, func(a, b hostRule) int { return cmp.Compare(b.rank(), a.rank()) })
	return h, errors.Join(errs...)
}

// Empty says that nothing is allowed.
func (h Hosts) Empty() bool { return len(h.rules) == 0 }

// Rules are what is allowed, as ParseHosts takes them, without presets.
func (h Hosts) Rules() []string {
	var texts []string
	for _, r := range h.rules {
		texts = append(texts, r.text)
	}
	return texts
}

func parseHostRule(text string) (hostRule, error) {
	name, below := strings.CutPrefix(text, "*.")
	r := hostRule{below: below}
	name, port, err := cutPort(name)
	if err != nil {
		return r, err
	}
	host, addr, err := parseHost(name)
	switch {
	case err != nil:
		return r, err
	case addr.IsValid() && below:
		return r, errors.New("is an address; only names have others below them")
	case addr.IsValid() && !isPublic(addr):
		return r, errors.New("is not a public address, and those are never reached")
	}
	r.name, r.port, r.text = host, port, host
	if below {
		r.text = "*." + host
	}
	if port != 0 {
		r.text = net.JoinHostPort(r.text, strconv.Itoa(int(port)))
	}
	return r, nil
}

// cutPort cuts off a port if there is one. An IPv6 address with a port is
// written in brackets, one without may be.
func cutPort(s string) (host string, port uint16, err error) {
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(s, "]") {
		return strings.TrimSuffix(inner, "]"), 0, nil
	}
	if !strings.Contains(s, ":") {
		return s, 0, nil
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return s, 0, nil
	}
	host, digits, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, errors.New("is not HOST or HOST:PORT")
	}
	port, err = parsePort(digits)
	return host, port, err
}

func parsePort(digits string) (uint16, error) {
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 || digits[0] == '0' {
		return 0, errors.New("has no port between 1 and 65535")
	}
	return uint16(n), nil
}

// parseHost normalises a host: lower case, without the dot at the end. Addresses
// are returned as such, mapped ones as what they are mapped from. What some
// programs would take for an address in another notation is refused.
func parseHost(s string) (host string, addr netip.Addr, err error) {
	if a, err := netip.ParseAddr(s); err == nil {
		if a.Zone() != "" {
			return "", netip.Addr{}, errors.New("has a zone")
		}
		a = a.Unmap()
		return a.String(), a, nil
	}
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	labels := strings.Split(name, ".")
	switch {
	case strings.ContainsFunc(s, func(r rune) bool { return r > '~' }):
		return "", netip.Addr{}, errors.New("is not ASCII; write an international name as xn--")
	case len(name) > 253 || slices.ContainsFunc(labels, badLabel):
		return "", netip.Addr{}, errors.New("is not the name of a host")
	case looksLikeNumber(labels[len(labels)-1]):
		return "", netip.Addr{}, errors.New("is neither a name nor an address as addresses are written")
	case len(labels) < 2:
		return "", netip.Addr{}, errors.New("is not a full name: it has no dot")
	}
	return name, netip.Addr{}, nil
}

func badLabel(label string) bool {
	return label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
		strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
		})
}

// looksLikeNumber: 127.1, 0x7f.1 and 2130706433 are addresses for inet_aton and
// for browsers. No top-level domain looks like that.
func looksLikeNumber(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	return !strings.ContainsFunc(digits, func(r rune) bool {
		return (r < '0' || r > '9') && (!hex || r < 'a' || r > 'f')
	})
}

// target is where a box wants to go, and the rule that lets it.
type target struct {
	// host is normalised: a name, or an address with addr set.
	host string
	addr netip.Addr
	port uint16
	rule string
}

func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// parseTarget reads HOST:PORT as a client sends it.
func parseTarget(s string) (target, error) {
	host, digits, err := net.SplitHostPort(s)
	if err != nil {
		return target{}, errors.New("is not HOST:PORT")
	}
	var t target
	if t.host, t.addr, err = parseHost(host); err != nil {
		return target{}, err
	}
	if t.port, err = parsePort(digits); err != nil {
		return target{}, err
	}
	return t, nil
}

// allow returns the text of the rule that lets a target through.
func (h Hosts) allow(t target) (rule string, ok bool) {
	for _, r := range h.rules {
		if r.allows(t) {
			return r.text, true
		}
	}
	return "", false
}

func (r hostRule) allows(t target) bool {
	web := r.port == 0 && (t.port == 443 || t.port == 80)
	if !web && (r.port == 0 || t.port != r.port) {
		return false
	}
	if r.below {
		return !t.addr.IsValid() && strings.HasSuffix(t.host, "."+r.name)
	}
	return t.host == r.name
}

// rank orders rules from wide to narrow.
func (r hostRule) rank() int {
	n := strings.Count(r.name, ".") << 2
	if !r.below {
		n += 1 << 20
	}
	if r.port != 0 {
		n++
	}
	return n
}
