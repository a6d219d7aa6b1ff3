package turn

import (
	"strings"
	"testing"
)

func TestRedactor(t *testing.T) {
	t.Parallel()
	redact := Redactor([]string{"hunter2hunter2", "hunter2", "abc"})
	for in, want := range map[string]string{
		"nothing to hide here":                                                 "nothing to hide here",
		"the key is hunter2hunter2.":                                           "the key is [redacted].",
		"abc is too short to be one":                                           "abc is too short to be one",
		"ghs_" + strings.Repeat("a", 36) + " pushed":                           "[redacted] pushed",
		"DATABASE_PASSWORD=correct-horse":                                      "DATABASE_PASSWORD=[redacted]",
		`api_key: "0123456789"`:                                                `api_key: "[redacted]"`,
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----": "[redacted]",
		"tokens are counted: 12345678":                                         "tokens are counted: 12345678",
		"let key = map[key]":                                                   "let key = map[key]",
	} {
		if got := redact(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("a text with hunter2hunter2 in it")
	f.Add("ghs_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	redact := Redactor([]string{"hunter2hunter2"})
	f.Fuzz(func(t *testing.T, text string) {
		out := redact(text)
		if strings.Contains(out, "hunter2hunter2") {
			t.Errorf("%q still holds the secret: %q", text, out)
		}
	})
}
