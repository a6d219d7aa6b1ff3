package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// line is a text without secrets, cut for a line on a terminal.
func (r records) line(text string, n int) string { return shorten(visible(r.redact(text)), n) }

// visible takes out what would command a terminal.
func visible(s string) string {
	return strings.Map(func(c rune) rune {
		if commands(c) {
			return '·'
		}
		return c
	}, strings.ToValidUTF8(s, "·"))
}

// commands tells whether a character makes a terminal do something but show it: a
// control of ASCII, one of those that stand for an escape by themselves, or one
// that turns around the order of what follows.
func commands(c rune) bool {
	switch {
	case c < ' ':
		return c != '\n' && c != '\t'
	case c >= 0x7f && c < 0xa0:
		return true
	}
	return c == '\u061c' || c == '\u200e' || c == '\u200f' || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069'
}

// printJSON prints a value without secrets. What would command a terminal is
// escaped: JSON itself does so with the controls of ASCII alone.
func printJSON(r records, v any) error {
	clean, err := redacted(v, r.redact)
	if err != nil {
		return err
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(clean); err != nil {
		return err
	}
	_, err = io.WriteString(r.out, escaped(b.String()))
	return err
}

// escaped is JSON in which what commands a terminal is written as \uXXXX. Such
// characters are nowhere but in texts.
func escaped(text string) string {
	var b strings.Builder
	for _, c := range text {
		if commands(c) {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// redacted is a value as its JSON decodes, with every text redacted. In the
// JSON itself an escape could hide a secret, or be cut in two.
func redacted(v any, redact func(string) string) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.UseNumber()
	var plain any
	if err := dec.Decode(&plain); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return redactAll(plain, redact), nil
}

func redactAll(v any, redact func(string) string) any {
	switch v := v.(type) {
	case string:
		return redact(v)
	case []any:
		for i := range v {
			v[i] = redactAll(v[i], redact)
		}
	case map[string]any:
		for key := range v {
			v[key] = redactAll(v[key], redact)
		}
	}
	return v
}
