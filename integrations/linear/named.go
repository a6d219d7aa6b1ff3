package linear

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// site is where people look at issues.
const site = "linear.app"

var (
	// anyAddress finds whole addresses, so that one in another's query is none.
	anyAddress = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._~:/?#@!$&'*+,;=%-]+`)
	// validURLKey is what a workspace's part of an address looks like, and
	// validIdentifier an issue's.
	validURLKey     = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	validIdentifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,15}-[1-9][0-9]{0,8}$`)
)

// named is an issue by its address: the workspace as it is written there, and
// the identifier, such as ENG-42.
type named struct{ workspace, key string }

// namedIn are the issues that a text names by their addresses, each once, the
// first three of them.
func namedIn(text string) []named {
	var all []named
	for _, a := range anyAddress.FindAllString(text, -1) {
		if n, ok := parseNamed(strings.TrimRight(a, ".,;:!?'*_~")); ok && !slices.Contains(all, n) {
			all = append(all, n)
		}
		if len(all) == maxLinks {
			break
		}
	}
	return all
}

// parseNamed reads https://linear.app/<workspace>/issue/<identifier>, with or
// without a name behind it. What follows a ? or a # only says where on the page.
func parseNamed(address string) (n named, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || !strings.EqualFold(u.Host, site) || u.User != nil {
		return named{}, false
	}
	parts := strings.Split(u.EscapedPath(), "/")
	if len(parts) < 4 || len(parts) > 5 || parts[0] != "" || parts[2] != "issue" {
		return named{}, false
	}
	n = named{strings.ToLower(parts[1]), strings.ToUpper(parts[3])}
	return n, validURLKey.MatchString(n.workspace) && validIdentifier.MatchString(n.key)
}
