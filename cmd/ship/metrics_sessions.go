package main

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ship/session"
)

// sessionMetrics is a session.Observer that counts. Every label is of a list
// that this release knows.
type sessionMetrics struct {
	leases      *prometheus.CounterVec
	inbox       *prometheus.HistogramVec
	firstAnswer *prometheus.HistogramVec
	effects     *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	inFlight    *prometheus.GaugeVec
	failures    *prometheus.CounterVec
	dead        *prometheus.CounterVec
	turns       *prometheus.CounterVec
	turnSeconds *prometheus.HistogramVec
	turnUSD     *prometheus.HistogramVec
}

func newSessionMetrics(r prometheus.Registerer) *sessionMetrics {
	f := factory{r}
	m := &sessionMetrics{
		leases:      f.counter("ship_leases_total", "Rights to sessions, by what became of them: claimed, taken over, released, lost, left to a newer release, failed.", "became"),
		inbox:       f.histogram("ship_inbox_wait_seconds", "From the acceptance of an event to the worker that reads it.", short(), "kind"),
		firstAnswer: f.histogram("ship_first_answer_seconds", "From the acceptance of a request to the first thing that whoever asked can see.", human(), "platform"),
		effects:     f.counter("ship_effects_total", "Effects that were performed, by kind, performer and result: done, failed, interrupted.", "kind", "by", "result"),
		seconds:     f.histogram("ship_effect_seconds", "Time that the performing of an effect took.", long(), "kind"),
		inFlight:    f.gauge("ship_effects_in_flight", "Effects that are being performed.", "kind"),
		failures:    f.counter("ship_effect_setbacks_total", "Failures of effects, by what follows: again, box lost, given up, stopped.", "kind", "by", "then"),
		dead:        f.counter("ship_dead_letters_total", "What was put aside, by the kind of the effect or event.", "kind"),
		turns:       f.counter("ship_turns_total", "Turns that ended, by how.", "ending"),
		turnSeconds: f.histogram("ship_turn_seconds", "Time that a turn took, with its wait for a box.", turnLength(), "ending"),
		turnUSD:     f.histogram("ship_turn_usd", "Money that a turn spent on models.", []float64{.01, .03, .1, .3, 1, 2, 5, 10, 30, 100}),
	}
	m.begin()
	return m
}

// begin makes the series that alerts look at: from nothing to one is no
// increase for Prometheus, from zero to one is.
func (m *sessionMetrics) begin() {
	for _, kind := range session.EffectKinds() {
		m.dead.WithLabelValues(string(kind))
	}
	for _, kind := range []session.Kind{session.Asked, session.Amended, session.Ordered, session.Closed, session.Vanished, session.Replayed, session.Garbled, "other"} {
		m.dead.WithLabelValues(string(kind))
	}
	for _, ending := range session.Endings() {
		m.turns.WithLabelValues(string(ending))
	}
	for _, became := range []session.LeaseOutcome{session.Claimed, session.TakenOver, session.Released, session.Lost, session.Unread, session.Unheld} {
		m.leases.WithLabelValues(string(became))
	}
}

// short is for what machines wait for: buckets from a wake to a worker that was
// away, in seconds.
func short() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
}

// human is for what a person waits for. Slack gives up after 3, Linear after 10.
func human() []float64 {
	return []float64{.1, .25, .5, 1, 2, 3, 5, 7.5, 10, 15, 30, 60, 120, 300, 900, 3600}
}

// long is from one call of an API to a turn.
func long() []float64 {
	return []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 1800, 3600}
}

// turnLength is up to the longest that anybody lets a turn take.
func turnLength() []float64 {
	return []float64{5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200}
}

// Held implements session.Observer.
func (m *sessionMetrics) LeaseChanged(h session.LeaseChange) {
	m.leases.WithLabelValues(string(h.Outcome)).Inc()
}

// What may become of the performing of an effect.
const (
	resultDone        = "done"
	resultFailed      = "failed"
	resultInterrupted = "interrupted"
)

// resultOf: whoever goes on with what was interrupted counts it again.
func resultOf(err error) string {
	switch {
	case err == nil:
		return resultDone
	case errors.Is(err, session.ErrShutdown), errors.Is(err, session.ErrLeaseLost), errors.Is(err, session.ErrStopRequested):
		return resultInterrupted
	}
	return resultFailed
}

// Performing implements session.Observer.
func (m *sessionMetrics) Performing(ctx context.Context, job session.Job) (context.Context, func(error)) {
	kind, began := string(job.Effect.Kind), time.Now()
	running := m.inFlight.WithLabelValues(kind)
	running.Inc()
	return ctx, func(err error) {
		running.Dec()
		m.effects.WithLabelValues(kind, job.Effect.By, resultOf(err)).Inc()
		m.seconds.WithLabelValues(kind).Observe(time.Since(began).Seconds())
	}
}

// Committed implements session.Observer.
func (m *sessionMetrics) Committed(_ context.Context, c session.Change) {
	for _, h := range c.Read {
		m.inbox.WithLabelValues(eventKind(h.Kind)).Observe(h.Read.Sub(h.At).Seconds())
	}
	for _, a := range c.Answered {
		m.firstAnswer.WithLabelValues(a.Platform).Observe(a.After.Seconds())
	}
	for _, s := range c.Failures {
		m.failures.WithLabelValues(string(s.Kind), s.By, string(s.Then)).Inc()
	}
	for _, d := range c.Dead {
		m.dead.WithLabelValues(letterKind(d)).Inc()
	}
	for _, e := range c.Ended {
		ending := string(e.Ending)
		m.turns.WithLabelValues(ending).Inc()
		m.turnSeconds.WithLabelValues(ending).Observe(e.At.Sub(e.Started).Seconds())
		m.turnUSD.WithLabelValues().Observe(e.Usage.USD)
	}
}

// eventKind is the kind of an event, or "other": an inbox may hold what is none.
func eventKind(k session.Kind) string {
	switch k {
	case session.Asked, session.Amended, session.Ordered, session.Closed, session.Vanished, session.Replayed, session.Garbled:
		return string(k)
	}
	return "other"
}

func letterKind(d session.DeadLetter) string {
	switch {
	case d.Effect != nil:
		return string(d.Effect.Kind)
	case d.Event != nil:
		return eventKind(d.Event.Kind)
	}
	return "other"
}

// factory registers what it makes. It panics only for two of one name, which is
// a bug in one of the lists.
type factory struct{ prometheus.Registerer }

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.MustRegister(c)
	return c
}

func (f factory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.MustRegister(g)
	return g
}

func (f factory) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	f.MustRegister(h)
	return h
}

// now registers what is looked up whenever somebody asks.
func (f factory) now(name, help string, value func() float64) {
	f.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}
