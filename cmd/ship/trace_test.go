package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"ship/session"
	"ship/session/memory"
)

// collected is a collector of traces that remembers.
type collected struct {
	mu sync.Mutex
	// spans by trace, each with the process that made it.
	spans map[string][]spanOf
}

type spanOf struct{ name, process, session string }

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range sent.GetResourceSpans() {
		process := ""
		for _, a := range from.GetResource().GetAttributes() {
			if a.GetKey() == "service.instance.id" {
				process = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				of := spanOf{name: s.GetName(), process: process}
				for _, a := range s.GetAttributes() {
					if a.GetKey() == "ship.session" {
						of.session = a.GetValue().GetStringValue()
					}
				}
				id := hex.EncodeToString(s.GetTraceId())
				c.spans[id] = append(c.spans[id], of)
			}
		}
	}
}

// whole returns the names of the spans of the trace that has one called name,
// and how many processes it spans.
func (c *collected) whole(name string) (names []string, processes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, spans := range c.spans {
		if !slices.ContainsFunc(spans, func(s spanOf) bool { return s.name == name }) {
			continue
		}
		seen := map[string]bool{}
		for _, s := range spans {
			names, seen[s.process] = append(names, s.name), true
		}
		return names, len(seen)
	}
	return nil, 0
}

// TestOneTraceFromWebhookToPullRequest: an intake takes the request, a worker
// dies over it, and another opens the pull request. All of that is one trace;
// the log lines of all three say whose they are, and the metrics tell the story.
func TestOneTraceFromWebhookToPullRequest(t *testing.T) {
	t.Parallel()
	traces := &collected{spans: map[string][]spanOf{}}
	server := httptest.NewServer(traces)
	t.Cleanup(server.Close)
	intake := newRig(t, rigOptions{more: "telemetry: {endpoint: \"" + server.URL + "\"}\n"})
	first, second := intake.twin(), intake.twin()
	intake.role, first.role, second.role = "intake", "worker", "worker"
	intake.start()
	first.start()
	intake.deliver(intake.says(intake.issue, "/ship turn TAKING 4s"))
	first.await("the first worker's box", patience, func() bool {
		names, _ := traces.whole("prepare")
		return names != nil
	})
	first.kill()
	second.start()
	intake.endedTurns(1, patience)
	var names []string
	second.await("the end of the trace", patience, func() bool {
		var processes int
		names, processes = traces.whole("turn")
		return processes == 3 && slices.Contains(names, "open")
	})
	for _, want := range []string{"webhook", "append", "inbox", "first answer", "admit", "acknowledge", "prepare", "takeover", "run", "publish", "open", "turn"} {
		if !slices.Contains(names, want) {
			t.Errorf("the trace has no span %q, only %q", want, names)
		}
	}
	if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "POST ") }) {
		t.Errorf("the trace has no request to a platform: %q", names)
	}
	checkStory(t, intake, second)
	second.stop()
	intake.stop()
	checkLogLines(t, intake, first, second)
}

// checkStory reads the metrics of the two that lived.
func checkStory(t *testing.T, intake, worker *rig) {
	t.Helper()
	has := func(r *rig, samples ...string) {
		t.Helper()
		text := "\n" + r.metrics()
		for _, s := range samples {
			if !strings.Contains(text, "\n"+s) {
				t.Errorf("the metrics have no %s:\n%s", s, ours(text))
			}
		}
	}
	has(intake, `ship_deliveries_total{event="issue_comment",outcome="accepted",platform="github"} 1`,
		`ship_store_seconds_count{op="append"} 1`, `ship_build_info{version=`, `go_goroutines `)
	has(worker, `ship_turns_total{ending="completed"} 1`, `ship_leases_total{became="taken over"} 1`,
		`ship_effects_total{by="worker",kind="publish",result="done"} 1`, `ship_effects_in_flight{kind="run"} 0`,
		`ship_turn_seconds_count{ending="completed"} 1`, `ship_box_places 2`, `ship_box_queue{full="worker"} 0`, `ship_sessions_held{phase="working"} 0`,
		`ship_platform_requests_total{host="127.0.0.1",status="201"}`, `ship_box_calls_total{op="create",result="done"} 1`,
		`ship_store_seconds_count{op="commit"}`)
}

// ours are the lines about ship.
func ours(metrics string) string {
	var b strings.Builder
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "ship_") && !strings.Contains(line, "_bucket{") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// checkLogLines: whatever line is about an effect says which, whose, in which
// generation, and what delivery it goes back to.
func checkLogLines(t *testing.T, rigs ...*rig) {
	t.Helper()
	effects := 0
	for _, r := range rigs {
		for line := range strings.Lines(r.log.String()) {
			var f map[string]any
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				continue // not of ship's log
			}
			want := []string{}
			switch {
			case f["effect"] != nil:
				effects++
				want = append(want, "session", "generation", "kind", "delivery")
			case f["msg"] == "event":
				want = append(want, "session", "generation", "delivery")
			case f["msg"] == "webhook":
				want = append(want, "session", "delivery")
			}
			for _, key := range want {
				if f[key] == nil || f[key] == "" || strings.Count(line, `"`+key+`":`) != 1 {
					t.Errorf("a line does not name its %s once: %s", key, line)
				}
			}
		}
	}
	if effects < 8 {
		t.Errorf("%d lines are about effects", effects)
	}
}

// TestTraceLivesInTheStore: the name of the span lies beside the request, and
// who forwards it hands it on.
func TestTraceLivesInTheStore(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	told := newTelemetry()
	told.tracer = provider.Tracer("test")
	store := told.watch(memory.New())
	ask := func(id session.ID, trail session.Trail) session.Request {
		t.Helper()
		_, err := store.Append(t.Context(), session.Delivery{
			Session: id, Keys: []string{"k" + string(id)}, Keep: time.Hour,
			Event: session.Event{V: session.EventVersion, Kind: session.Asked, Request: &session.Request{ID: "1", Trail: trail}},
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := store.Claim(t.Context(), id, "token", time.Minute)
		if err != nil || len(c.Events) != 1 {
			t.Fatal(c.Events, err)
		}
		return *c.Events[0].Request
	}
	first := ask("s.1", session.Trail{})
	second := ask("s.2", first.Trail)
	made := spans.GetSpans()
	if len(made) != 2 || made[0].SpanContext.TraceID() != made[1].SpanContext.TraceID() || made[1].Parent.SpanID() != made[0].SpanContext.SpanID() {
		t.Errorf("spans: %+v", made)
	}
	if id := made[1].SpanContext.TraceID().String(); !strings.Contains(second.Trail.Trace, id) {
		t.Errorf("the request carries %q, not the trace %s", second.Trail.Trace, id)
	}
}

// TestTraceOfNonsense: what is no trace is none.
func TestTraceOfNonsense(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "00", "00-zz-zz-01", "00-00000000000000000000000000000000-0000000000000000-01", strings.Repeat("a", 1<<16)} {
		if _, ok := withSpan(t.Context(), session.Trail{Trace: text}); ok {
			t.Errorf("%.40q is taken for a trace", text)
		}
	}
}

// TestErrorsStayHere: a span says of an error what a person hears.
func TestErrorsStayHere(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	tr := tracer{sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test")}
	for want, err := range map[string]error{
		"Away.": &session.Problem{Say: "Away.", Err: errors.New("hunter2")}, "failed": errors.New("hunter2"), "": session.ErrShutdown,
	} {
		spans.Reset()
		_, done := tr.Performing(t.Context(), session.Job{Effect: session.Effect{
			Kind: session.Run, Trail: session.Trail{Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		}})
		done(err)
		got := spans.GetSpans()
		if len(got) != 1 || got[0].Status.Description != want || got[0].SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%v gave %+v", err, got)
		}
	}
}

// deaf is a collector that is away.
type deaf struct {
	sdktrace.SpanExporter
	err error
}

func (d *deaf) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return d.err }

// TestCollectorAway: it is said once, and once that it is back.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	r := prometheus.NewRegistry()
	away := &deaf{err: errors.New("nobody there")}
	q := newSpanExporter(away, r, slog.New(slog.NewTextHandler(&log, nil)))
	for _, err := range []error{away.err, away.err, nil, nil} {
		away.err = err
		if err := q.ExportSpans(t.Context(), tracetest.SpanStubs{{}}.Snapshots()); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	families, err := r.Gather()
	if err != nil || families[0].GetMetric()[0].GetCounter().GetValue() != 2 {
		t.Errorf("lost: %v, %v", families, err)
	}
}
