package turn

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

const knownKey = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAwhxjbm0SFWnIQBlPzq06\nxsAmKr8mroRzMhBqu5/HvBCzoIco\nshort=\n-----END RSA PRIVATE KEY-----\n"

func TestRedactor(t *testing.T) {
	t.Parallel()
	redact := Redactor([]string{"hunter2hunter2", "hunter2", "abc", "redis://user:opensesame@redis:6379/0", knownKey, "a b+c/d=e&f"})
	for in, want := range map[string]string{
		"":                           "",
		"nothing to hide here\n":     "nothing to hide here\n",
		"the key is hunter2hunter2.": "the key is [redacted].",
		"abc is too short to be one": "abc is too short to be one",
		"ghs_" + strings.Repeat("a", 36) + " pushed":                                       "[redacted] pushed",
		"DATABASE_PASSWORD=correct-horse":                                                  "DATABASE_PASSWORD=[redacted]",
		"export SIGNING_KEY='correct horse'":                                               "export SIGNING_KEY='[redacted] horse'",
		"DEPLOY_TOKEN=correct-horse\nPATH=/usr/local/bin":                                  "DEPLOY_TOKEN=[redacted]\nPATH=/usr/local/bin",
		`api_key: "0123456789"`:                                                            `api_key: "[redacted]"`,
		`{"client_secret":"0123456789","id":7}`:                                            `{"client_secret":"[redacted]","id":7}`,
		"aws.secret-access-key = 0123456789":                                               "aws.secret-access-key = [redacted]",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----":             "[redacted]",
		"x -----BEGIN PRIVATE KEY-----\nMIIE\n\nand then":                                  "x [redacted]\nand then",
		`"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----" it is`:             `"[redacted]" it is`,
		"1: -----BEGIN PRIVATE KEY-----\n2: MIIE+/=\n3: -----END PRIVATE KEY-----\n4: end": "1: [redacted]\n4: end",
		"+-----BEGIN RSA PRIVATE KEY-----\n+Proc-Type: 4,ENCRYPTED\n+MIIE\nthe end":        "+[redacted]\nthe end",
		"tokens are counted: 12345678":                                                     "tokens are counted: 12345678",
		"let key = map[key]":                                                               "let key = map[key]",
		"MAX_TOKENS=1234567 and KEYBOARD=qwertyuiop":                                       "MAX_TOKENS=1234567 and KEYBOARD=qwertyuiop",
		"the password of redis is opensesame":                                              "the password of redis is [redacted]",
		"redis://other:seesaw@host/0":                                                      "redis://other:[redacted]@host/0"[:len("redis://other:[redacted]")] + "host/0",
		"one line: xsAmKr8mroRzMhBqu5/HvBCzoIco!":                                          "one line: [redacted]!",
		"a+b%2Bc%2Fd%3De%26f":                                                              "[redacted]",
		"Authorization: Bearer 0123456789":                                                 "Authorization: Bearer [redacted]",
		"cut: hunter2hunt…":                                                                "cut: [redacted]…",
		"cut: hunter2hunt… (failed), opensesa…":                                            "cut: [redacted]… (failed), [redacted]…",
		"cut: ghs_aaaaaaaa… and sk-abcd…":                                                  "cut: [redacted] and [redacted]",
		"not cut: hunt… and ask-me-anything…":                                              "not cut: hunt… and ask-me-anything…",
	} {
		if got := redact(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// TestRedactorLeavesNoLine: of a real key no line is left, wherever the text
// begins and ends.
func TestRedactorLeavesNoLine(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	all := strings.Split(strings.TrimSpace(text), "\n")
	for name, redact := range map[string]func(string) string{"known": Redactor([]string{text}), "escaped": Redactor([]string{strings.ReplaceAll(text, "\n", `\n`)}), "unknown": Redactor(nil)} {
		for from := range all {
			if name == "unknown" && from > 0 {
				continue // nobody can tell
			}
			got := redact("see\n" + strings.Join(all[from:], "\n") + "\nthere")
			for _, line := range all[1 : len(all)-2] {
				if strings.Contains(got, line) {
					t.Errorf("%s, from line %d: %q is left in %q", name, from, line, got)
				}
			}
			if !strings.HasPrefix(got, "see\n") || !strings.HasSuffix(got, "\nthere") {
				t.Errorf("%s, from line %d: too much is gone: %q", name, from, got)
			}
		}
	}
}

// TestRedactedStreamIsBounded: a line without an end is held no longer than
// bearable, and of a secret in it that is cut nothing is seen.
func TestRedactedStreamIsBounded(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, maxHeld - 10, maxHeld, maxHeld + 1} {
		text := strings.Repeat("x", before) + "hunter2hunter2" + strings.Repeat("y", 3*maxHeld) + "\nnext\n"
		want := ""
		for i, size := range []int{1, 1000, len(text)} {
			got := streamed(text, size)
			if i == 0 {
				want = got
			}
			if got != want || len(got) > maxHeld+100 || !strings.HasSuffix(got, longLine+"\nnext\n") || strings.Contains(got, "hunter2") {
				t.Errorf("%d bytes before, in pieces of %d: %d bytes, ending %q", before, size, len(got), got[max(0, len(got)-100):])
			}
		}
	}
}

// streamed sends a text through a stream in pieces.
func streamed(text string, size int) string {
	var out strings.Builder
	s := NewRedactedStream([]string{"hunter2hunter2", knownKey}, func(part string) { out.WriteString(part) })
	for len(text) > 0 {
		n := min(max(size, 1), len(text))
		_, _ = s.Write([]byte(text[:n]))
		text = text[n:]
	}
	_ = s.Close()
	_ = s.Close()
	return out.String()
}

func FuzzRedactor(f *testing.F) {
	f.Add("a text with hunter2hunter2 in it")
	f.Add("ghs_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	f.Add("hunter2hunter2hunter2…hunter2hunter2\nAPI_KEY=hunter2hunter2")
	redact := Redactor([]string{"hunter2hunter2"})
	f.Fuzz(func(t *testing.T, text string) {
		out := redact(text)
		if strings.Contains(out, "hunter2hunter2") {
			t.Errorf("%q still holds the secret: %q", text, out)
		}
		if utf8.ValidString(text) && !utf8.ValidString(out) {
			t.Errorf("%q became %q, which is no text", text, out)
		}
	})
}

// FuzzRedactedStream: wherever a text is cut in two or in many, it comes out as
// if it had come at once.
func FuzzRedactedStream(f *testing.F) {
	f.Add("a text with hunter2hunter2 in it\n", 14, 1)
	f.Add("DATABASE_PASSWORD=correct-horse\nnext", 20, 3)
	f.Add("a ghs_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…\r\n\n", 9, 7)
	f.Add("x\n"+knownKey+"y\n"+knownKey, 70, 5)
	f.Add("-----BEGIN PRIVATE KEY-----\nMIIE", 3, 2)
	whole := Redactor([]string{"hunter2hunter2", knownKey})
	f.Fuzz(func(t *testing.T, text string, at, size int) {
		if len(text) > maxHeld {
			return
		}
		want := whole(text)
		if got := streamed(text, size); got != want {
			t.Errorf("%q in pieces of %d became %q, want %q", text, size, got, want)
		}
		at = min(max(at, 0), len(text))
		var out strings.Builder
		s := NewRedactedStream([]string{"hunter2hunter2", knownKey}, func(part string) { out.WriteString(part) })
		_, _ = fmt.Fprint(s, text[:at])
		_, _ = fmt.Fprint(s, text[at:])
		_ = s.Close()
		if out.String() != want {
			t.Errorf("%q cut at %d became %q, want %q", text, at, out.String(), want)
		}
	})
}
