package main

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestRequestsToPlatforms: each is counted and has a span below its effect, and
// neither has the path, which may be as good as a password.
func TestRequestsToPlatforms(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	spans := tracetest.NewInMemoryExporter()
	told := newTelemetry()
	told.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test")
	client := &http.Client{Transport: told.transport(server.Client().Transport)}
	ctx, parent := told.tracer.Start(t.Context(), "effect")
	for _, address := range []string{server.URL + "/hunter2?token=hunter2", "http://127.0.0.1:1/hunter2"} {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}
	parent.End()
	made := spans.GetSpans()
	if len(made) != 3 || made[0].Name != "POST 127.0.0.1" || made[0].Parent.SpanID() != parent.SpanContext().SpanID() {
		t.Errorf("spans: %+v", made)
	}
	text := scrape(t, told)
	for _, want := range []string{`ship_platform_requests_total{host="127.0.0.1",status="404"} 1`, `ship_platform_requests_total{host="127.0.0.1",status="0"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, s := range made {
		for _, a := range s.Attributes {
			text += a.Value.String()
		}
		text += s.Name + s.Status.Description
	}
	if strings.Contains(text, "hunter2") {
		t.Error("a path or a query is told")
	}
}

// scrape is what Prometheus would read.
func scrape(t *testing.T, told *telemetry) string {
	t.Helper()
	families, err := told.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetCounter() == nil {
				continue
			}
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			b.WriteString(f.GetName() + "{" + strings.Join(labels, ",") + "} " + strconv.FormatFloat(m.GetCounter().GetValue(), 'f', -1, 64) + "\n")
		}
	}
	return b.String()
}
