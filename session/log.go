package session

import (
	"context"
	"log/slog"
	"slices"
)

// logKey is where a context holds the attributes of its lines.
type logKey struct{}

// WithLog returns a context whose lines in the log carry these attributes,
// given as to slog.Logger.With, if they are written through a LogHandler. An
// attribute replaces an earlier one of its name.
func WithLog(ctx context.Context, args ...any) context.Context {
	attrs := attrsOf(args)
	var all []slog.Attr
	for _, a := range logAttrs(ctx) {
		if !named(attrs, a.Key) {
			all = append(all, a)
		}
	}
	return context.WithValue(ctx, logKey{}, append(all, attrs...))
}

func attrsOf(args []any) []slog.Attr {
	var r slog.Record
	r.Add(args...)
	var attrs []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	return attrs
}

func logAttrs(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(logKey{}).([]slog.Attr)
	return attrs
}

func named(attrs []slog.Attr, key string) bool {
	return slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == key })
}

// LogHandler adds what WithLog put into a context to each line that is written
// under it. A line that names the same itself keeps its own.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next: next} }

type logHandler struct {
	next slog.Handler
	// own are the names that every line of this logger has.
	own []string
}

func (h logHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	attrs := logAttrs(ctx)
	if len(attrs) == 0 {
		return h.next.Handle(ctx, r)
	}
	own := slices.Clone(h.own)
	r.Attrs(func(a slog.Attr) bool {
		own = append(own, a.Key)
		return true
	})
	r = r.Clone()
	for _, a := range attrs {
		if !slices.Contains(own, a.Key) {
			r.AddAttrs(a)
		}
	}
	return h.next.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	own := slices.Clone(h.own)
	for _, a := range attrs {
		own = append(own, a.Key)
	}
	return logHandler{next: h.next.WithAttrs(attrs), own: own}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{next: h.next.WithGroup(name)} // names in a group are others
}

// effectAttrs are what a line about an effect carries.
func effectAttrs(e Effect) []any {
	attrs := []any{slog.String("effect", e.ID), slog.String("kind", string(e.Kind))}
	if e.Turn > 0 {
		attrs = append(attrs, slog.Int("turn", e.Turn))
	}
	if e.Trail.Delivery != "" {
		attrs = append(attrs, slog.String("delivery", e.Trail.Delivery))
	}
	return attrs
}

// logAttrs are what a line about a dead letter carries.
func (d DeadLetter) logAttrs() []any {
	switch {
	case d.Effect != nil:
		return effectAttrs(*d.Effect)
	case d.Event != nil:
		return []any{slog.String("kind", string(d.Event.Kind)), slog.String("delivery", d.Event.Delivery)}
	}
	return nil
}

// level of an effect that went well: what repeats is for those who ask.
func (e Effect) level() slog.Level {
	if e.Kind == Report || e.Kind == Tend {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
