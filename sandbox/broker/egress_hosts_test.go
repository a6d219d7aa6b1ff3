package broker

import (
	"net/netip"
	"strings"
	"testing"
)

func mustHosts(t testing.TB, list ...string) Hosts {
	t.Helper()
	h, err := ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHosts(t *testing.T) {
	t.Parallel()
	h := mustHosts(t, "registry.npmjs.org", "*.example.com", "Deep.Example.com:8443", "*.ports.example.net:9000",
		"xn--bcher-kva.example.org.", "1.1.1.1", "[2606:4700:4700::1111]:853", "2606:4700:4700::1001")
	for target, want := range map[string]string{
		"registry.npmjs.org:443":        "registry.npmjs.org",
		"registry.npmjs.org:80":         "registry.npmjs.org",
		"REGISTRY.npmjs.ORG:443":        "registry.npmjs.org",
		"registry.npmjs.org.:443":       "registry.npmjs.org",
		"a.example.com:443":             "*.example.com",
		"a.b.c.example.com:443":         "*.example.com",
		"deep.example.com:8443":         "deep.example.com:8443",
		"deep.example.com:443":          "*.example.com",
		"x.ports.example.net:9000":      "*.ports.example.net:9000",
		"xn--bcher-kva.example.org:443": "xn--bcher-kva.example.org",
		"1.1.1.1:443":                   "1.1.1.1",
		"[::ffff:1.1.1.1]:443":          "1.1.1.1",
		"[2606:4700:4700::1111]:853":    "[2606:4700:4700::1111]:853",
		"[2606:4700:4700:0::1001]:443":  "2606:4700:4700::1001",

		// Not that port.
		"registry.npmjs.org:22": "", "registry.npmjs.org:8443": "", "x.ports.example.net:443": "",
		"[2606:4700:4700::1111]:443": "", "1.1.1.1:53": "",
		// Not that host.
		"npmjs.org:443": "", "example.com:443": "", "ports.example.net:9000": "",
		"registry.npmjs.org.evil.com:443": "", "evil-registry.npmjs.org:443": "", "xexample.com:443": "",
		"a.example.com.evil.com:443": "", "1.1.1.1.example.com.evil.com:443": "",
		"1.1.1.2:443": "", "[2606:4700:4700::1002]:443": "", "2606:4700:4700::1001:443": "",
	} {
		to, err := parseTarget(target)
		if err != nil {
			if want != "" || target != "2606:4700:4700::1001:443" {
				t.Errorf("%s: %v", target, err)
			}
			continue
		}
		if got, ok := h.allow(to); got != want || ok != (want != "") {
			t.Errorf("%s is allowed by %q, want %q", target, got, want)
		}
	}
}

// hostileTargets are ways to write a place that somebody might read as another.
func hostileTargets() []string {
	return []string{
		"", ":", ":443", "registry.npmjs.org", "registry.npmjs.org:", "registry.npmjs.org:https", "registry.npmjs.org:0",
		"registry.npmjs.org:65536", "registry.npmjs.org:0443", "registry.npmjs.org:+443", "registry.npmjs.org:443:443",
		"registry.npmjs.org:-1", "registry.npmjs.org:443 ", " registry.npmjs.org:443",
		"registry.npmjs.org@evil.com:443", "user:pw@registry.npmjs.org:443", "registry.npmjs.org/evil:443",
		"registry.npmjs.org\\evil.com:443", "registry.npmjs.org#evil.com:443", "registry.npmjs.org?evil.com:443",
		"registry.npmjs.org%2eevil.com:443", "registry.npmjs.org\x00.evil.com:443", "registry.npmjs.org\r\nHost:443",
		"registry。npmjs.org:443", "registry．npmjs．org:443", "ｒegistry.npmjs.org:443", "registry.npmjs.org․:443", "bücher.example.com:443",
		"regiſtry.npmjs.org:443", "registry.npmjs.org..:443", ".registry.npmjs.org:443", "a..example.com:443", "*.example.com:443",
		"-a.example.com:443", "a-.example.com:443", "a_b.example.com:443", strings.Repeat("a", 64) + ".example.com:443",
		strings.Repeat("a.", 130) + "example.com:443",
		"localhost:443", "com:443", "127.1:443", "0x7f.1:443", "0x7f000001:443", "2130706433:443", "0177.0.0.1:443", "127.0.0.01:443",
		"1.1.1:443", "1.1.1.1.:443", "0x:443", "a.0x1f:443", "a.123:443", "256.256.256.256:443", "1.1.1.1.1:443",
		"[::1%lo]:443", "[fe80::1%25eth0]:443", "[1.1.1.1:443", "1.1.1.1]:443", "[]:443", "[[::1]]:443", "::1:443",
	}
}

func TestHostileTargets(t *testing.T) {
	t.Parallel()
	h := mustHosts(t, "registry.npmjs.org", "*.example.com", "1.1.1.1")
	for _, s := range hostileTargets() {
		to, err := parseTarget(s)
		if rule, ok := h.allow(to); err == nil || ok {
			t.Errorf("%q is taken for %s, allowed by %q", s, to, rule)
		}
	}
}

func TestBadRules(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"": "name of a host", "*": "name of a host", "*.": "name of a host", "*.com": "no dot", "com": "no dot", "localhost": "no dot", "a.*.com": "name of a host",
		"**.example.com": "name of a host", "*example.com": "name of a host", "https://example.com": "has no port", "example.com/path": "name of a host",
		"bücher.example": "xn--", "user@example.com": "name of a host", "example.com:": "port", "example.com:99999": "port",
		"127.1": "neither", "0x7f.1": "neither", "*.1.1.1.1": "address", "127.0.0.1": "not a public", "10.0.0.1:443": "not a public",
		"[::ffff:127.0.0.1]": "not a public", "169.254.169.254": "not a public", "[fd00:ec2::254]": "not a public", "fe80::1%eth0": "zone",
	} {
		_, err := ParseHosts([]string{"fine.example.com", rule})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rule %q: %v, want %q", rule, err, want)
		}
	}
}

func TestPresetIsSound(t *testing.T) {
	t.Parallel()
	h := mustHosts(t, "registries")
	if len(h.rules) != len(Registries()) {
		t.Errorf("%d rules of %d", len(h.rules), len(Registries()))
	}
	for _, r := range h.rules {
		if r.below || r.port != 0 {
			t.Errorf("%s is wider than one host", r.text)
		}
	}
	if again := mustHosts(t, h.Rules()...); len(again.rules) != len(h.rules) {
		t.Errorf("%d rules when they are read again", len(again.rules))
	}
	if !mustHosts(t).Empty() || h.Empty() {
		t.Error("Empty is wrong")
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "172.15.0.1": true, "172.32.0.1": true, "100.63.0.1": true, "100.128.0.1": true,
		"2606:4700::1111": true, "2001:200::1": true, "2a00:1450:4001::1": true, "::ffff:1.1.1.1": true,

		"0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "127.0.0.1": false, "127.255.255.254": false, "172.16.0.1": false,
		"172.31.255.255": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "100.100.100.200": false,
		"192.0.0.192": false, "192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false, "198.18.0.1": false, "198.19.255.255": false,
		"192.88.99.1": false, "224.0.0.1": false, "239.1.1.1": false, "240.0.0.1": false, "255.255.255.255": false, "168.63.129.16": false,
		"::": false, "::1": false, "::7f00:1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:0:127.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::101:101": false, "64:ff9b:1::1": false, "2002:7f00:1::": false, "2002:101:101::1": false,
		"2001::1": false, "2001:0:4136:e378:8000:63bf:3fff:fdd2": false, "2001:10::1": false, "2001:20::1": false, "2001:db8::1": false,
		"3fff::1": false, "100::1": false, "5f00::1": false, "fc00::1": false, "fd00:ec2::254": false, "fd20:ce::254": false,
		"fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "ff02::1": false, "2606:4700::1%eth0": false,
	} {
		if got := isPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("isPublic(%s) = %t", address, got)
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// FuzzTarget: what is let through is exactly what a rule says, in one spelling.
func FuzzTarget(f *testing.F) {
	for _, s := range append(hostileTargets(), "registry.npmjs.org:443", "a.example.com:443", "A.Example.Com.:80", "[::ffff:1.1.1.1]:443") {
		f.Add(s)
	}
	h := mustHosts(f, "registry.npmjs.org", "*.example.com", "1.1.1.1")
	f.Fuzz(func(t *testing.T, s string) {
		to, err := parseTarget(s)
		if err != nil {
			return
		}
		if again, err := parseTarget(to.String()); err != nil || again != to {
			t.Fatalf("%q becomes %s, and that %s, %v", s, to, again, err)
		}
		rule, ok := h.allow(to)
		if !ok {
			return
		}
		right := map[string]bool{
			"registry.npmjs.org": to.host == "registry.npmjs.org" && !to.addr.IsValid(),
			"*.example.com":      strings.HasSuffix(to.host, ".example.com") && len(to.host) > len(".example.com") && !to.addr.IsValid(),
			"1.1.1.1":            to.addr == netip.AddrFrom4([4]byte{1, 1, 1, 1}),
		}
		if !right[rule] || to.port != 443 && to.port != 80 {
			t.Fatalf("%q is let through as %s by %s", s, to, rule)
		}
		for _, c := range to.host {
			if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789.-", c) {
				t.Fatalf("%q has %q", to.host, c)
			}
		}
	})
}

// FuzzRule: a rule that is taken means the same when it is read again.
func FuzzRule(f *testing.F) {
	for _, s := range append(Registries(), "*.example.com:8443", "[2606:4700::1]:443", "1.1.1.1", "*", "registries") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rule, err := parseHostRule(s)
		if err != nil {
			return
		}
		if again, err := parseHostRule(rule.text); err != nil || again != rule {
			t.Fatalf("%q becomes %+v, and that %+v, %v", s, rule, again, err)
		}
		if rule.allows(target{host: "localhost", port: 443}) {
			t.Fatalf("%q allows localhost", s)
		}
	})
}
