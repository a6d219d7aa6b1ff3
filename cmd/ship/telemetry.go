package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"ship/bot"
	"ship/session"
	"ship/session/turn"
)

// TelemetrySettings say where traces go.
type TelemetrySettings struct {
	Endpoint string `yaml:"endpoint" is:"url" doc:"Where traces are sent, as OTLP over HTTP, such as http://localhost:4318. Empty: as OTEL_EXPORTER_OTLP_ENDPOINT says, or nowhere."`
}

// tracing: somebody wants traces.
func (s TelemetrySettings) tracing(environ []string) bool {
	return s.Endpoint != "" || variable(environ, "OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		variable(environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// collectorSecrets are the headers by which a collector of traces lets ship in.
// They are no setting: OpenTelemetry has variables for them, written as
// NAME=VALUE,NAME=VALUE. A collector that refuses may repeat them.
func collectorSecrets(environ []string) (out []string) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(variable(environ, name), ",") {
			_, value, _ := strings.Cut(pair, "=")
			plain, err := url.PathUnescape(value)
			if err != nil {
				plain = value
			}
			out = append(out, value, strings.TrimPrefix(strings.TrimSpace(plain), "Bearer "))
		}
	}
	return out
}

// telemetry is what a process tells of itself: metrics always, traces if
// somebody wants them.
type telemetry struct {
	registry *prometheus.Registry
	front    *bot.Metrics
	store    *storeMetrics
	platform *platformMetrics
	sessions *sessionMetrics
	boxes    *boxMetrics
	// tracer is nil when nobody wants traces.
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
}

// newTelemetry has metrics only.
func newTelemetry() *telemetry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.MustRegister(buildInfo())
	return &telemetry{
		registry: r, front: bot.NewMetrics(r), store: newStoreMetrics(r), platform: newPlatformMetrics(r), sessions: newSessionMetrics(r),
		boxes: newBoxMetrics(r),
	}
}

func buildInfo() prometheus.Collector {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ship_build_info", Help: "Always 1; the version is a label."}, []string{"version"})
	g.WithLabelValues(version()).Set(1)
	return g
}

// openTelemetry has traces as well, if somebody wants them. The provider reads
// the usual variables of OpenTelemetry for what is not set.
func openTelemetry(ctx context.Context, s TelemetrySettings, r role, log *slog.Logger) (*telemetry, error) {
	t := newTelemetry()
	if !s.tracing(os.Environ()) {
		return t, nil
	}
	var where []otlptracehttp.Option
	if s.Endpoint != "" {
		where = append(where, otlptracehttp.WithEndpointURL(s.Endpoint+"/v1/traces"))
	}
	exporter, err := otlptracehttp.New(ctx, where...)
	if err != nil {
		return nil, fmt.Errorf("open the exporter of traces: %w", err)
	}
	about, err := self(ctx, r)
	if err != nil {
		return nil, errors.Join(err, exporter.Shutdown(ctx))
	}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(about),
		sdktrace.WithBatcher(newSpanExporter(exporter, t.registry, log), sdktrace.WithBatchTimeout(2*time.Second)))
	t.tracer = t.provider.Tracer("ship")
	return t, nil
}

// self is what traces say of this process.
func self(ctx context.Context, r role) (*resource.Resource, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this machine in traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "ship"), attribute.String("service.version", version()),
		attribute.String("service.instance.id", fmt.Sprintf("%s/%d", host, os.Getpid())), attribute.String("ship.role", string(r)),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return about, nil
}

// flushTime is how long the last spans may take on their way out.
const flushTime = 3 * time.Second

// close sends the spans that are left. Where they go may be away: that is no
// failure of ship.
func (t *telemetry) close(ctx context.Context, log *slog.Logger) {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime) // ctx has ended, which is why this is called
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.Warn("the last spans were not sent", "err", err)
	}
}

// observer of sessions.
func (t *telemetry) observer() session.Observer {
	if t.tracer == nil {
		return t.sessions
	}
	return observers{t.sessions, tracer{t.tracer}}
}

// watchWorker measures what works in this process.
func (t *telemetry) watchWorker(d *session.Dispatcher, w *turn.Worker) {
	watchPlaces(t.registry, w)
	t.registry.MustRegister(newHeldSessions(d))
}

// watch returns a store whose calls are counted, and whose requests carry their
// trace.
func (t *telemetry) watch(b backend) backend {
	watched := watchedStore{backend: b, m: t.store}
	if t.tracer == nil {
		return watched
	}
	return tracedStore{backend: watched, tracer: t.tracer}
}

// transport is how platforms are spoken with.
func (t *telemetry) transport(next http.RoundTripper) http.RoundTripper {
	return watchedTransport{next: next, m: t.platform, tracer: t.tracer}
}

// observers are several as one.
type observers []session.Observer

// LeaseChanged implements session.Observer.
func (o observers) LeaseChanged(h session.LeaseChange) {
	for _, each := range o {
		each.LeaseChanged(h)
	}
}

// Performing implements session.Observer.
func (o observers) Performing(ctx context.Context, job session.Job) (context.Context, func(error)) {
	var ended []func(error)
	for _, each := range o {
		var done func(error)
		ctx, done = each.Performing(ctx, job)
		ended = append(ended, done)
	}
	return ctx, func(err error) {
		for _, done := range ended {
			done(err)
		}
	}
}

// Committed implements session.Observer.
func (o observers) Committed(ctx context.Context, c session.Change) {
	for _, each := range o {
		each.Committed(ctx, c)
	}
}
