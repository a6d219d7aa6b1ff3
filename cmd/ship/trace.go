package main

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"ship/session"
)

// traceparent names the span of a context as it is kept with a request; empty:
// there is none, or nobody wants to see it.
func traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// withSpan returns a context below the span that is kept with a request.
func withSpan(ctx context.Context, t session.Trail) (context.Context, bool) {
	if t.Trace == "" {
		return ctx, false
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": t.Trace})
	return ctx, trace.SpanContextFromContext(ctx).IsValid()
}

// tracedStore gives every request that is taken in a span, by whatever way it
// came, and lays its name beside it: so what follows is in the same trace, in
// whatever process.
type tracedStore struct {
	backend
	tracer trace.Tracer
}

// Append implements session.Inbox.
func (s tracedStore) Append(ctx context.Context, d session.Delivery) (session.Receipt, error) {
	if d.Event.Request == nil {
		return s.backend.Append(ctx, d)
	}
	r := *d.Event.Request
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx, _ = withSpan(ctx, r.Trail) // forwarded by another session
	}
	ctx, span := s.tracer.Start(ctx, "append", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.String("ship.session", string(d.Session)), attribute.String("ship.delivery", d.Event.Delivery)))
	defer span.End()
	r.Trail.Trace = traceparent(ctx)
	d.Event.Request = &r
	receipt, err := s.backend.Append(ctx, d)
	span.SetAttributes(attribute.Bool("ship.duplicate", receipt.Duplicate))
	if err != nil {
		span.SetStatus(codes.Error, "not kept")
	}
	return receipt, err
}

// tracer is a session.Observer that makes spans, for what goes back to a
// request that has one.
type tracer struct{ trace.Tracer }

// Held implements session.Observer.
func (tracer) LeaseChanged(session.LeaseChange) {}

// Performing implements session.Observer.
func (t tracer) Performing(ctx context.Context, job session.Job) (context.Context, func(error)) {
	below, ok := withSpan(ctx, job.Effect.Trail)
	if !ok {
		return ctx, func(error) {}
	}
	e := job.Effect
	ctx, span := t.Start(below, string(e.Kind), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("ship.session", string(job.State.ID)), attribute.Int64("ship.generation", job.Lease.Epoch),
		attribute.String("ship.effect", e.ID), attribute.String("ship.by", e.By), attribute.String("ship.delivery", e.Trail.Delivery),
		attribute.Int("ship.turn", e.Turn), attribute.Int("ship.attempt", e.Attempts+1), attribute.Bool("ship.repeat", job.Repeat)))
	return ctx, func(err error) {
		finish(span, err)
	}
}

// finish ends the span of an effect. It says of an error what a person hears:
// the rest is in the log, which stays here.
func finish(span trace.Span, err error) {
	result := resultOf(err)
	span.SetAttributes(attribute.String("ship.result", result))
	var problem *session.Problem
	switch {
	case errors.As(err, &problem):
		span.SetStatus(codes.Error, problem.Say)
	case err != nil && result == resultFailed:
		span.SetStatus(codes.Error, result)
	}
	span.End()
}

// Committed implements session.Observer.
func (t tracer) Committed(ctx context.Context, c session.Change) {
	of := []attribute.KeyValue{attribute.String("ship.session", string(c.Session)), attribute.Int64("ship.generation", c.Epoch)}
	for _, h := range c.Read {
		t.tell(ctx, "inbox", interval{h.Trail, h.At, h.Read}, append(of, attribute.String("ship.kind", string(h.Kind)))...)
	}
	for _, a := range c.Answered {
		t.tell(ctx, "first answer", interval{a.Trail, a.Trail.Asked, a.Trail.Asked.Add(a.After)}, append(of, attribute.String("ship.effect_kind", string(a.Kind)))...)
	}
	if c.Taken != nil {
		t.tell(ctx, "takeover", interval{c.Taken.Trail, c.Taken.At, c.Taken.At}, of...)
	}
	for _, e := range c.Ended {
		t.tell(ctx, "turn", interval{e.Trail, e.Started, e.At}, append(of,
			attribute.Int("ship.turn", e.Turn), attribute.String("ship.ending", string(e.Ending)), attribute.Bool("ship.changed", e.Changed),
			attribute.Int("ship.model_calls", e.Usage.Calls), attribute.Float64("ship.usd", e.Usage.USD))...)
	}
}

// interval is from when to when something was, by the store's clock.
type interval struct {
	trail      session.Trail
	begin, end time.Time
}

// tell makes the span of what is over.
func (t tracer) tell(ctx context.Context, name string, p interval, attrs ...attribute.KeyValue) {
	ctx, ok := withSpan(ctx, p.trail)
	if !ok {
		return
	}
	_, made := t.Start(ctx, name, trace.WithTimestamp(p.begin), trace.WithAttributes(attrs...))
	made.End(trace.WithTimestamp(p.end))
}
