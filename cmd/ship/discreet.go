package main

import (
	"context"
	"errors"
	"log/slog"

	"ship/session"
	"ship/session/turn"
)

// discreet takes secrets out of what a performer says went wrong. A platform may
// repeat in a refusal what it was given, and the cause of a failure is logged,
// kept in the store, and shown to operators.
type discreet struct {
	session.Performer
	redact func(string) string
}

// Perform implements session.Performer.
func (d discreet) Perform(ctx context.Context, job session.Job) (session.Performed, error) {
	done, err := d.Performer.Perform(ctx, job)
	return done, d.clean(err)
}

// clean is an error that is told apart as before, and says no secret.
func (d discreet) clean(err error) error {
	if err == nil {
		return nil
	}
	quiet := redactedError{error: err, text: d.redact(err.Error())}
	var p *session.Problem
	if errors.As(err, &p) {
		clean := *p
		clean.Say, clean.Err = d.redact(p.Say), quiet
		return &clean
	}
	return quiet
}

// redactedError is an error whose text says no secret.
type redactedError struct {
	error
	text string
}

// Error is the text without secrets.
func (h redactedError) Error() string { return h.text }

// Unwrap is the error as it was, to be told apart by, and not to be shown.
func (h redactedError) Unwrap() error { return h.error }

// discreetly has a log leave out the secrets of the settings, what looks like one,
// and what would command a terminal, from whatever is said in it.
func discreetly(secrets []string) *slog.HandlerOptions {
	clean := turn.Redactor(secrets)
	redact := func(text string) string { return visible(clean(text)) }
	return &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { return cleanAttr(a, redact) }}
}

// cleanAttr redacts what is text, or is written as one.
func cleanAttr(a slog.Attr, redact func(string) string) slog.Attr {
	switch v := a.Value; v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(redact(v.String()))
	case slog.KindAny:
		a.Value = cleanValue(v.Any(), redact)
	default: // numbers, times and the like hold none
	}
	return a
}

func cleanValue(v any, redact func(string) string) slog.Value {
	switch v := v.(type) {
	case nil, *slog.Source, slog.Level:
		return slog.AnyValue(v)
	case error:
		return slog.StringValue(redact(v.Error()))
	}
	clean, err := redacted(v, redact)
	if err != nil {
		return slog.StringValue("[cannot be shown]")
	}
	return slog.AnyValue(clean)
}
