package main

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// maxHosts is how many hosts have a name in the metrics. A platform has one or
// two; files may lie on more.
const maxHosts = 12

// platformMetrics count the requests to platforms.
type platformMetrics struct {
	seconds *prometheus.HistogramVec
	answers *prometheus.CounterVec

	mu    sync.Mutex
	hosts map[string]bool // guarded by mu
}

func newPlatformMetrics(r prometheus.Registerer) *platformMetrics {
	f := factory{r}
	return &platformMetrics{
		seconds: f.histogram("ship_platform_request_seconds", "Time until a platform answered a request.", short(), "host"),
		answers: f.counter("ship_platform_requests_total", "Requests to platforms by the status of the answer; status 0: none.", "host", "status"),
		hosts:   map[string]bool{},
	}
}

// host is the name of a host, or "other" when there are too many.
func (m *platformMetrics) host(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.hosts[name] && len(m.hosts) >= maxHosts {
		return "other"
	}
	m.hosts[name] = true
	return name
}

// watchedTransport counts requests, and gives each a span below the effect that
// it serves. Neither has the path, for some are as good as a password.
type watchedTransport struct {
	next   http.RoundTripper
	m      *platformMetrics
	tracer trace.Tracer // nil: nobody wants traces
}

// RoundTrip implements http.RoundTripper.
func (t watchedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	host, began := t.m.host(r.URL.Hostname()), time.Now()
	ended := t.span(r)
	resp, err := t.next.RoundTrip(r)
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	ended(status)
	t.m.seconds.WithLabelValues(host).Observe(time.Since(began).Seconds())
	t.m.answers.WithLabelValues(host, strconv.Itoa(knownStatus(status))).Inc()
	return resp, err
}

// knownStatus is a status as HTTP has them, or 0.
func knownStatus(status int) int {
	if http.StatusText(status) == "" {
		return 0
	}
	return status
}

func (t watchedTransport) span(r *http.Request) func(status int) {
	if t.tracer == nil || !trace.SpanContextFromContext(r.Context()).IsValid() {
		return func(int) {}
	}
	_, span := t.tracer.Start(r.Context(), r.Method+" "+r.URL.Hostname(), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname())))
	return func(status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status == 0 || status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}
