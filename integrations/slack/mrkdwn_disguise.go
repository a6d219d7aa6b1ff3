package slack

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

var (
	looksLikeAddress = regexp.MustCompile(`(?i)^\W*(?:https?:|www\.)|^\S+\.(?:com|org|net|io|dev|app|co)(?:/\S*)?$`)
	// namesHost finds names of hosts, of those that few files are called like.
	namesHost = regexp.MustCompile(`(?i)\b(?:[\pL\pN_-]+\.)+(?:com|org|net|io|dev|app|co)\b`)
)

// disguised: a link's label is what people take for another address than the one
// that it leads to, or has one of another site in it.
func disguised(label, to string) bool {
	label = strings.Map(asRead, label)
	u, err := url.Parse(to)
	switch {
	case err != nil, looksLikeAddress.MatchString(label) && bare(label) != bare(to):
		return true
	case u.Scheme == "mailto":
		return false
	}
	host := withoutWWW(u.Hostname())
	for _, named := range namesHost.FindAllString(label, -1) {
		if withoutWWW(named) != host {
			return true
		}
	}
	return false
}

func withoutWWW(host string) string { return strings.TrimPrefix(strings.ToLower(host), "www.") }

// asRead is a character as people read it, who see none without a width, nor that
// some are wider than others.
func asRead(r rune) rune {
	switch {
	case unicode.In(r, unicode.Cf, unicode.Mn):
		return -1
	case r >= '！' && r <= '～': // full width
		return r - '！' + '!'
	case r == '․', r == '。', r == '｡':
		return '.'
	case r == '⁄', r == '∕':
		return '/'
	}
	return r
}
