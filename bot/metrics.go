package bot

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what comes in, from all platforms.
type Metrics struct {
	registry   *prometheus.Registry
	deliveries *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	inFlight   *prometheus.GaugeVec
}

// NewMetrics registers the metrics of the front door. A registry that has them
// already is a mistake in the wiring and panics.
func NewMetrics(reg *prometheus.Registry) *Metrics {
	m := &Metrics{
		registry: reg,
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ship_deliveries_total",
			Help: "Webhooks and the like that were answered, by platform, event and what became of them.",
		}, []string{"platform", "event", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ship_delivery_seconds",
			Help: "Time that a webhook took, from its head to the answer.",
			// From a duplicate on a fast machine to the ten seconds that GitHub waits.
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"platform"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ship_deliveries_in_flight",
			Help: "Webhooks that are being worked on.",
		}, []string{"platform"}),
	}
	reg.MustRegister(m.deliveries, m.seconds, m.inFlight)
	return m
}

// meter counts the webhooks of one platform, with a bounded number of labels.
type meter struct {
	deliveries *prometheus.CounterVec
	seconds    prometheus.Observer
	inFlight   prometheus.Gauge
	outcomes   *words
}

// Heard counts what a platform says otherwise than by a webhook: an event, what
// became of it, and how long that took. It is called once per platform.
func (m *Metrics) Heard(platform string) func(event, outcome string, took time.Duration) {
	return m.of(platform).answered
}

func (m *Metrics) of(platform string) meter {
	return meter{
		deliveries: m.deliveries.MustCurryWith(prometheus.Labels{"platform": platform}),
		seconds:    m.seconds.WithLabelValues(platform),
		inFlight:   m.inFlight.WithLabelValues(platform),
		outcomes:   newWords(maxOutcomes),
	}
}

// answered counts one webhook that was answered.
func (m meter) answered(event, outcome string, took time.Duration) {
	m.deliveries.WithLabelValues(knownEvent(event), m.outcomes.known(outcome)).Inc()
	m.seconds.Observe(took.Seconds())
}

// maxOutcomes is how many words receivers may have for what became of a
// webhook before the rest is "other".
const maxOutcomes = 32

// knownEvent is the name of an event, or "other": what a platform may send in
// future does not make new series.
func knownEvent(name string) string {
	switch name {
	case "":
		return "none"
	case "check_run", "check_suite", "github_app_authorization", "installation", "installation_repositories",
		"installation_target", "issue_comment", "issues", "label", "merge_group", "ping", "pull_request",
		"pull_request_review", "pull_request_review_comment", "pull_request_review_thread", "push", "repository",
		"status", "workflow_run",
		"AgentSessionEvent", "AppUserNotification", "OAuthApp", "OAuthAuthorization", "PermissionChange",
		"event_callback", "url_verification", "slash_command", "interaction", "block_actions", "view_submission",
		"app_mention", "message", "app_home_opened", "app_uninstalled", "tokens_revoked",
		"agent_session_stopped", "app_rate_limited":
		return name
	}
	return "other"
}

// words remembers the first few different words that it sees.
type words struct {
	max  int
	mu   sync.RWMutex
	seen map[string]struct{}
}

func newWords(max int) *words { return &words{max: max, seen: make(map[string]struct{}, max)} }

// known is the word, or "other" when there are too many.
func (w *words) known(word string) string {
	w.mu.RLock()
	_, ok := w.seen[word]
	w.mu.RUnlock()
	if ok {
		return word
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok = w.seen[word]; !ok && len(w.seen) >= w.max {
		return "other"
	}
	w.seen[word] = struct{}{}
	return word
}
