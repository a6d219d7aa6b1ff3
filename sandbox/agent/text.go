package agent

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxAnswer  = 16 << 10
	maxMessage = 300
	maxStep    = 120
)

// credentials in a URL: everything between the scheme and the at sign, and the
// value of a query parameter that is named like a secret.
var (
	urlUser  = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s@]+@`)
	urlQuery = regexp.MustCompile(`(?i)([?&](?:[a-z_-]*(?:key|token|secret|signature|password|sig))=)[^&\s"']+`)
	bearer   = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}`)
)

// scrub takes credentials out of what a provider said. Providers echo URLs and
// headers in their errors.
func scrub(s string) string {
	s = urlUser.ReplaceAllString(s, "${1}")
	s = urlQuery.ReplaceAllString(s, "${1}…")
	return bearer.ReplaceAllString(s, "${1} …")
}

// clip shortens to at most n bytes, on a rune's edge, and says that it did.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	cut := n - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:max(cut, 0)] + mark
}

// oneLine makes a text fit into a sentence: no line breaks, no control
// characters, bounded.
func oneLine(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return clip(strings.Join(strings.Fields(s), " "), n)
}
