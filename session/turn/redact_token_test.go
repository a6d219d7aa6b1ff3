package turn

import (
	"strings"
	"testing"
	"time"

	"ship/sandbox/broker"
)

// TestTurnTokensAreRedacted: what the broker signs is found for what it is, also
// when its end was cut off. Every command in a box can print one.
func TestTurnTokensAreRedacted(t *testing.T) {
	t.Parallel()
	signer, err := broker.NewSigner([]byte(strings.Repeat("k", broker.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	token, err := signer.Sign(broker.Grant{Session: "gh.1.7", Turn: "1", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	redact := Redactor(nil)
	_, rest, _ := strings.Cut(token, ".")
	for in, want := range map[string]string{
		"I have " + token + " here":            "I have [redacted] here",
		"I have " + token[:14] + "…":           "I have [redacted]",
		"of the release before: ship1." + rest: "of the release before: [redacted]",
	} {
		if got := redact(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
