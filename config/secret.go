package config

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// redacted stands for a secret wherever one is printed.
const redacted = "[redacted]"

// Secret is a text that no printer, encoder or logger shows. The zero Secret
// is empty.
type Secret struct {
	// A pointer: printers that reach this field by reflection show an address.
	value *string
}

// NewSecret wraps a text.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{value: &s}
}

// Reveal returns the text itself.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Empty reports whether there is nothing to hide.
func (s Secret) Empty() bool { return s.value == nil }

// String hides the text; that there is none is no secret.
func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return redacted
}

// Format hides the text from every verb of fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// GoString hides the text from %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the text.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalYAML hides the text.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// Secrets are several, of which each is good: so a secret can be rotated.
// Written as a text, the entries are separated by commas.
type Secrets []Secret

// NewSecrets wraps texts.
func NewSecrets(texts ...string) Secrets {
	out := make(Secrets, 0, len(texts))
	for _, s := range texts {
		out = append(out, NewSecret(s))
	}
	return out
}

// Reveal returns the texts themselves.
func (s Secrets) Reveal() []string {
	out := make([]string, 0, len(s))
	for _, one := range s {
		out = append(out, one.Reveal())
	}
	return out
}
