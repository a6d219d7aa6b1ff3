package main

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ship/sandbox"
	"ship/session"
	"ship/session/turn"
)

// boxMetrics count what is asked of the provider of boxes.
type boxMetrics struct {
	boxes   *prometheus.GaugeVec
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newBoxMetrics(r prometheus.Registerer) *boxMetrics {
	f := factory{r}
	return &boxMetrics{
		boxes:   f.gauge("ship_boxes", "Boxes that the provider has, by state, when it was last asked for all of them (every five minutes).", "state"),
		calls:   f.counter("ship_box_calls_total", "Calls to the provider of boxes, by result: done, gone, busy, quota, refused, failed.", "op", "result"),
		seconds: f.histogram("ship_box_call_seconds", "Time that a call to the provider of boxes took.", long(), "op"),
	}
}

// took is deferred by a call that begins; err is what it will have come to.
func (m *boxMetrics) took(op string, began time.Time, err *error) {
	m.calls.WithLabelValues(op, boxResult(*err)).Inc()
	m.seconds.WithLabelValues(op).Observe(time.Since(began).Seconds())
}

func boxResult(err error) string {
	switch {
	case err == nil:
		return resultDone
	case errors.Is(err, sandbox.ErrGone):
		return "gone"
	case errors.Is(err, sandbox.ErrBusy):
		return "busy"
	case errors.Is(err, sandbox.ErrQuota):
		return "quota"
	case errors.Is(err, sandbox.ErrAuth):
		return "refused"
	}
	return resultFailed
}

// watchedBoxes counts what becomes of boxes.
type watchedBoxes struct {
	boxes
	m *boxMetrics
}

// Create implements sandbox.Provider.
func (w watchedBoxes) Create(ctx context.Context, spec sandbox.Spec) (_ sandbox.Info, err error) {
	defer w.m.took("create", time.Now(), &err)
	return w.boxes.Create(ctx, spec)
}

// Attach implements sandbox.Provider.
func (w watchedBoxes) Attach(ctx context.Context, id string, ttl time.Duration) (_ sandbox.Box, err error) {
	defer w.m.took("attach", time.Now(), &err)
	return w.boxes.Attach(ctx, id, ttl)
}

// List implements sandbox.Provider.
func (w watchedBoxes) List(ctx context.Context, labels map[string]string) (all []sandbox.Info, err error) {
	defer w.m.took("list", time.Now(), &err)
	all, err = w.boxes.List(ctx, labels)
	if err == nil && len(labels) == 0 {
		w.m.count(all)
	}
	return all, err
}

func (m *boxMetrics) count(all []sandbox.Info) {
	n := map[sandbox.State]int{}
	for _, b := range all {
		n[b.State]++
	}
	for _, state := range []sandbox.State{sandbox.Running, sandbox.Paused} {
		m.boxes.WithLabelValues(string(state)).Set(float64(n[state]))
	}
}

// Extend implements sandbox.Provider.
func (w watchedBoxes) Extend(ctx context.Context, id string, until time.Time) (err error) {
	defer w.m.took("extend", time.Now(), &err)
	return w.boxes.Extend(ctx, id, until)
}

// Pause implements sandbox.Provider.
func (w watchedBoxes) Pause(ctx context.Context, id string) (err error) {
	defer w.m.took("pause", time.Now(), &err)
	return w.boxes.Pause(ctx, id)
}

// Destroy implements sandbox.Provider.
func (w watchedBoxes) Destroy(ctx context.Context, id string) (err error) {
	defer w.m.took("destroy", time.Now(), &err)
	return w.boxes.Destroy(ctx, id)
}

// watchPlaces registers how many boxes are at work, and how many are waited for.
func watchPlaces(r prometheus.Registerer, w *turn.Worker) {
	f := factory{r}
	f.now("ship_box_places", "Boxes that may be at work in this process at the same time.", func() float64 { return float64(w.Slots) })
	f.now("ship_box_places_taken", "Boxes that are at work in this process.", func() float64 { taken, _ := w.Places(); return float64(taken) })
	r.MustRegister(boxQueue{w, prometheus.NewDesc("ship_box_queue",
		"Turns in this process that wait for a place for a box, by the limit that is reached: worker (sandbox.max), person (limits.sessions_per_user), all (sandbox.total).",
		[]string{"full"}, nil)})
}

// boxQueue is a prometheus.Collector of the turns that wait for a place.
type boxQueue struct {
	worker *turn.Worker
	desc   *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (q boxQueue) Describe(out chan<- *prometheus.Desc) { out <- q.desc }

// Collect implements prometheus.Collector.
func (q boxQueue) Collect(out chan<- prometheus.Metric) {
	_, waiting := q.worker.Places()
	for _, full := range []session.Full{session.FullWorker, session.FullPerson, session.FullAll} {
		out <- prometheus.MustNewConstMetric(q.desc, prometheus.GaugeValue, float64(waiting[full]), string(full))
	}
}

// heldSessions is a prometheus.Collector of the sessions that this process holds.
type heldSessions struct {
	dispatcher *session.Dispatcher
	desc       *prometheus.Desc
}

func newHeldSessions(d *session.Dispatcher) heldSessions {
	return heldSessions{d, prometheus.NewDesc("ship_sessions_held",
		"Sessions that this process is at, by what people see of them. One that only waits for somebody is held by nobody.", []string{"phase"}, nil)}
}

// Describe implements prometheus.Collector.
func (h heldSessions) Describe(out chan<- *prometheus.Desc) { out <- h.desc }

// Collect implements prometheus.Collector. A phase that no session is in is
// there all the same, so that a graph shows the zero.
func (h heldSessions) Collect(out chan<- prometheus.Metric) {
	held := h.dispatcher.Phases()
	for _, phase := range session.Phases() {
		out <- prometheus.MustNewConstMetric(h.desc, prometheus.GaugeValue, float64(held[phase]), string(phase))
	}
}
