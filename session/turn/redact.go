package turn

import (
	"regexp"
	"slices"
	"strings"
)

// redacted stands for what was taken out.
const redacted = "[redacted]"

// shapes are what credentials look like, whoever they belong to.
var shapes = regexp.MustCompile(strings.Join([]string{
	`gh[pousr]_[A-Za-z0-9_.-]{20,}`,                                 // GitHub
	`github_pat_[A-Za-z0-9_]{20,}`,                                  // GitHub
	`xox[abeprs]-[A-Za-z0-9-]{10,}`,                                 // Slack
	`xapp-[A-Za-z0-9-]{10,}`,                                        // Slack
	`lin_(?:api|oauth)_[A-Za-z0-9]{20,}`,                            // Linear
	`sk-[A-Za-z0-9_-]{20,}`,                                         // model providers
	`AKIA[A-Z0-9]{16}`,                                              // AWS
	`e2b_[a-f0-9]{20,}`,                                             // E2B
	`ship1\.[A-Za-z0-9_.-]{20,}`,                                    // our own turn tokens
	`eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`, // JSON web tokens
	`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?`,
}, "|"))

// assignments are variables whose names say that they are secret.
var assignments = regexp.MustCompile(`(?i)\b([a-z0-9_]*(?:secret|passwd|password|api_?key|access_?key|auth_?token|private_?key)[a-z0-9_]*\s*[=:]\s*["']?)([^\s"']{6,})`)

// Redactor returns a function that takes the known secrets, and whatever looks
// like one, out of a text. Texts shorter than six bytes are no secrets.
func Redactor(known []string) func(string) string {
	known = slices.DeleteFunc(slices.Clone(known), func(s string) bool { return len(s) < 6 })
	// The longest first: one may be part of another.
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(known))
	for _, s := range known {
		pairs = append(pairs, s, redacted)
	}
	exact := strings.NewReplacer(pairs...)
	return func(text string) string {
		text = exact.Replace(text)
		text = shapes.ReplaceAllString(text, redacted)
		return assignments.ReplaceAllString(text, "${1}"+redacted)
	}
}
