package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"ship/session"
	"ship/session/turn"
)

const discreetSecret = "s3cret-that-nobody-may-see"

// failing is a performer that always fails.
type failing struct{ err error }

func (f failing) Perform(context.Context, session.Job) (session.Performed, error) {
	return session.Performed{}, f.err
}

func TestDiscreetPerformer(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("refused %s: %w", discreetSecret, session.ErrStopRequested)
	for name, err := range map[string]error{
		"plain":   cause,
		"problem": fmt.Errorf("post: %w", &session.Problem{Say: "Refused: " + discreetSecret, Err: cause, Again: true, Gone: true}),
	} {
		d := discreet{failing{err}, turn.Redactor([]string{discreetSecret})}
		_, got := d.Perform(t.Context(), session.Job{})
		if !errors.Is(got, session.ErrStopRequested) || strings.Contains(got.Error(), discreetSecret) || !strings.Contains(got.Error(), "refused [redacted]") {
			t.Errorf("%s: %v", name, got)
		}
		var p *session.Problem
		if errors.As(got, &p) != (name == "problem") {
			t.Errorf("%s: %#v", name, got)
		} else if p != nil && (p.Say != "Refused: [redacted]" || !p.Again || !p.Gone || strings.Contains(p.Err.Error(), discreetSecret)) {
			t.Errorf("%s: %#v", name, p)
		}
	}
	if _, err := (discreet{failing{}, nil}).Perform(t.Context(), session.Job{}); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// TestLogIsDiscreet: whatever an attribute is, no secret gets out by it, and a
// line stays one JSON value.
func TestLogIsDiscreet(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(slog.NewJSONHandler(&out, discreetly([]string{discreetSecret, "line one of a key\nline two of that key"})))
	log.With("with", discreetSecret).WithGroup("g").Info("a message with "+discreetSecret,
		"text", "x "+discreetSecret, "err", errors.New("no "+discreetSecret), "bytes", json.RawMessage(`"`+discreetSecret+`"`),
		"list", []string{discreetSecret}, "struct", struct{ A string }{discreetSecret}, "lines", "line one of a key\nline two of that key",
		"quoted", `password=abc"defghijk\`, "func", func() {}, "number", 7, "nil", nil)
	var line map[string]any
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if strings.Contains(out.String(), discreetSecret) || strings.Contains(out.String(), "line two") {
		t.Errorf("a secret is in %s", out.String())
	}
	if g, _ := line["g"].(map[string]any); g["number"] != 7.0 || g["text"] != "x [redacted]" || g["err"] != "no [redacted]" {
		t.Errorf("the line is %s", out.String())
	}
	if line["level"] != "INFO" || line["msg"] != "a message with [redacted]" {
		t.Errorf("the line is %s", out.String())
	}
}
