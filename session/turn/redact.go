package turn

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// redacted stands for what was taken out.
const redacted = "[redacted]"

const (
	// minKnown is the shortest text that is taken for a secret.
	minKnown = 6
	// minPart is how much of a line of a secret has to be there, at the least, for
	// it to be taken for that line. Short lines are of anything.
	minPart = 16
	// cutMark is what whoever shortens a text puts at its end.
	cutMark = "…"
)

// shapes are what credentials look like, whoever they belong to; also when the
// end of one was cut off.
var shapes = func() *regexp.Regexp {
	// What they begin with, and the characters that follow.
	tokens := []struct{ begin, rest string }{
		{`gh[pousr]_`, `[A-Za-z0-9_.-]{20,}`},                                 // GitHub
		{`github_pat_`, `[A-Za-z0-9_]{20,}`},                                  // GitHub
		{`glpat-`, `[A-Za-z0-9_-]{20,}`},                                      // GitLab
		{`xox[abeprs]-`, `[A-Za-z0-9-]{10,}`},                                 // Slack
		{`xapp-`, `[A-Za-z0-9-]{10,}`},                                        // Slack
		{`lin_(?:api|oauth)_`, `[A-Za-z0-9]{20,}`},                            // Linear
		{`sk-`, `[A-Za-z0-9_-]{20,}`},                                         // model providers
		{`npm_`, `[A-Za-z0-9]{30,}`},                                          // npm
		{`A(?:KI|SI)A`, `[A-Z0-9]{16}`},                                       // AWS
		{`AIza`, `[A-Za-z0-9_-]{30,}`},                                        // Google
		{`e2b_`, `[a-f0-9]{20,}`},                                             // E2B
		{`ship[0-9]+\.`, `[A-Za-z0-9_.-]{20,}`},                               // our own turn tokens, of any release
		{`eyJ`, `[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`}, // JSON web tokens
	}
	var whole, begun []string
	for _, t := range tokens {
		whole = append(whole, t.begin+t.rest)
		begun = append(begun, t.begin)
	}
	cut := `\b(?:` + strings.Join(begun, "|") + `)[A-Za-z0-9_.-]{4,}` + cutMark
	return regexp.MustCompile(strings.Join(append(whole, cut), "|"))
}()

// named are values whose names say that they are secret: variables, fields, the
// password of an address, the header that authorises a request. The name stays.
var named = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b([a-z0-9_.-]*(?:secret|passwd|password|passphrase|credential|(?:api|access|private|signing)[_-]?key|(?:access|auth|bot|bearer|refresh|session|id)[_-]?token)[a-z0-9_-]*["']?[ \t]*[=:][ \t]*["']?)[^\s"']{6,}`),
	regexp.MustCompile(`\b([A-Z0-9_]*(?:TOKEN|KEY|PASS|PWD)=["']?)[^\s"']{6,}`),
	regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@"']*:)[^/\s@"']+@`),
	regexp.MustCompile(`(?i)(\bauthorization["']?[ \t]*[:=][ \t]*["']?(?:bearer|basic|token)[ \t]+)[^\s"']{6,}`),
}

// How a private key is written. Between its first line and its last there is
// nothing but base64, a header or two, and what a tool puts before each line.
var (
	keyBegin = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)
	keyEnd   = regexp.MustCompile(`-----END [A-Z ]*PRIVATE KEY-----`)
	keyLine  = regexp.MustCompile(`^[\s>|+:0-9-]*(?:[A-Za-z0-9+/=]*|(?:Proc-Type|DEK-Info): .*)["',\\]*\s*$`)
)

// Redactor returns a function that takes the known secrets, and whatever looks
// like one, out of a text; also the password of an address that is known, each
// line of what has several, and what was cut off before its end. Texts shorter
// than six bytes are no secrets. It is safe for concurrent use.
func Redactor(known []string) func(string) string {
	r := newRules(known)
	return func(text string) string {
		var out strings.Builder
		l := lineRedactor{rules: r}
		for line := range strings.Lines(text) {
			out.WriteString(l.next(line))
		}
		return out.String()
	}
}

// rules are what is taken out of a line.
type rules struct {
	exact *strings.Replacer
	// parts are the known secrets, the longest first.
	parts []string
}

func newRules(known []string) *rules {
	r := &rules{parts: partsOf(known)}
	pairs := make([]string, 0, 2*len(r.parts))
	for _, s := range r.parts {
		pairs = append(pairs, s, redacted)
	}
	r.exact = strings.NewReplacer(pairs...)
	return r
}

// partsOf lists what is not to be seen of the known secrets, the longest first:
// one may be part of another.
func partsOf(known []string) (parts []string) {
	add := func(least int, all ...string) {
		for _, s := range all {
			if s = strings.TrimSpace(s); len(s) >= least && !strings.Contains(s, "\n") && !slices.Contains(parts, s) {
				parts = append(parts, s)
			}
		}
	}
	for _, secret := range known {
		secret = strings.TrimSpace(strings.ReplaceAll(secret, `\n`, "\n"))
		add(minKnown, secret, url.QueryEscape(secret))
		if strings.Contains(secret, "\n") {
			add(minPart, strings.Split(secret, "\n")...)
		}
		if u, err := url.Parse(secret); err == nil && u.User != nil {
			password, _ := u.User.Password()
			add(minKnown, password, url.QueryEscape(password))
		}
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	return parts
}

// line takes secrets out of one line.
func (r *rules) line(text string) string {
	text = r.exact.Replace(r.cut(text))
	text = shapes.ReplaceAllString(text, redacted)
	for _, name := range named {
		text = name.ReplaceAllString(text, "${1}"+redacted)
	}
	return text
}

// cut takes out the beginnings of secrets whose ends were cut off.
func (r *rules) cut(text string) string {
	before, rest, found := strings.Cut(text, cutMark)
	if !found {
		return text
	}
	for _, secret := range r.parts {
		if n := suffixBegins(before, secret); n > 0 {
			before = before[:len(before)-n] + redacted
			break
		}
	}
	return before + cutMark + r.cut(rest)
}

// suffixBegins is how much of a secret's beginning, at least a few bytes, a text
// ends with.
func suffixBegins(text, secret string) int {
	for n := min(len(secret), len(text)); n >= minKnown; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			return n
		}
	}
	return 0
}

// lineRedactor redacts a text line by line, each with its end. A private key is the only
// secret that has several.
type lineRedactor struct {
	rules *rules
	// inKey: the beginning of a private key was taken out, and not its end.
	inKey bool
}

func (l *lineRedactor) next(line string) string {
	if l.inKey {
		return l.within(line)
	}
	at := keyBegin.FindStringIndex(line)
	if at == nil {
		return l.rules.line(line)
	}
	before := l.rules.line(line[:at[0]]) + redacted
	if end := keyEnd.FindStringIndex(line[at[1]:]); end != nil {
		return before + l.next(line[at[1]+end[1]:])
	}
	l.inKey = true
	return before
}

// within reads a line after the beginning of a private key.
func (l *lineRedactor) within(line string) string {
	if end := keyEnd.FindStringIndex(line); end != nil {
		l.inKey = false
		return l.next(line[end[1]:])
	}
	if keyLine.MatchString(line) {
		return ""
	}
	l.inKey = false // it broke off
	return "\n" + l.next(line)
}
