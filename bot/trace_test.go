package bot

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestWebhookSpans: what is for a session has a span that says what became of
// it, a root of its own whatever the caller says; the rest has none.
func TestWebhookSpans(t *testing.T) {
	t.Parallel()
	const foreign = "0af7651916cd43dd8448eb211c80319c"
	for _, c := range []struct {
		body    string
		away    error
		outcome string
		status  codes.Code
	}{
		{body: "take k1", outcome: "accepted"},
		{body: "take k1", away: errors.New("away"), outcome: "unavailable", status: codes.Error},
		{body: "ignore"},
		{body: "forged"},
	} {
		spans := tracetest.NewInMemoryExporter()
		s := NewServer(Config{
			Inbox: &inbox{err: c.away}, Receivers: map[string]Receiver{"test": receiver{}},
			Tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test"),
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/test", strings.NewReader(c.body))
		r.Header.Set("traceparent", "00-"+foreign+"-b7ad6b7169203331-01")
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		made := spans.GetSpans()
		if c.outcome == "" {
			if len(made) != 0 {
				t.Errorf("%q has spans: %+v", c.body, made)
			}
			continue
		}
		if len(made) != 1 || made[0].Status.Code != c.status || made[0].SpanContext.TraceID().String() == foreign {
			t.Fatalf("%q has the spans %+v", c.body, made)
		}
		attrs := attribute.NewSet(made[0].Attributes...)
		if got, _ := attrs.Value("ship.outcome"); got.AsString() != c.outcome {
			t.Errorf("%q ended as %q, want %q", c.body, got.AsString(), c.outcome)
		}
	}
}
