package main

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// quiet sends spans, and tells once that they cannot be sent and once that they
// can again. What gets lost is counted: nobody waits for a span.
type quiet struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	lost prometheus.Counter
	away atomic.Bool
}

func newQuiet(next sdktrace.SpanExporter, r prometheus.Registerer, log *slog.Logger) *quiet {
	lost := prometheus.NewCounter(prometheus.CounterOpts{Name: "ship_spans_lost_total", Help: "Spans of traces that could not be sent."})
	r.MustRegister(lost)
	return &quiet{SpanExporter: next, log: log, lost: lost}
}

// ExportSpans implements sdktrace.SpanExporter.
func (q *quiet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	if was := q.away.Swap(err != nil); was != (err != nil) {
		q.log.WarnContext(ctx, "sending traces changed", "works", err == nil, "err", err)
	}
	if err != nil {
		q.lost.Add(float64(len(spans)))
	}
	return nil
}
