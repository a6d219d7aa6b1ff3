package main

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// spanExporter sends spans, and tells once that they cannot be sent and once that they
// can again. What gets lost is counted: nobody waits for a span.
type spanExporter struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	lost prometheus.Counter
	away atomic.Bool
}

func newSpanExporter(next sdktrace.SpanExporter, r prometheus.Registerer, log *slog.Logger) *spanExporter {
	lost := prometheus.NewCounter(prometheus.CounterOpts{Name: "ship_spans_lost_total", Help: "Spans of traces that could not be sent."})
	r.MustRegister(lost)
	return &spanExporter{SpanExporter: next, log: log, lost: lost}
}

// ExportSpans implements sdktrace.SpanExporter.
func (q *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	if was := q.away.Swap(err != nil); was != (err != nil) {
		q.log.WarnContext(ctx, "sending traces changed", "works", err == nil, "err", err)
	}
	if err != nil {
		q.lost.Add(float64(len(spans)))
	}
	return nil
}
