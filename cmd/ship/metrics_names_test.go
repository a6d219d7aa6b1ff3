package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"ship/sandbox"
	"ship/session"
	"ship/session/turn"
)

// described is a metric as it was registered.
type described struct {
	help   string
	labels []string
}

// allMetrics are those that a process of ship has, as they describe themselves.
func allMetrics(t *testing.T) map[string]described {
	t.Helper()
	told := newTelemetry()
	newMetrics(told.registry)
	told.watchWorker(&session.Dispatcher{}, turn.New(turn.Config{}))
	newSpanExporter(nil, told.registry, nil)
	if _, err := newDisturbance("1", SandboxSettings{Chaos: true}, told.registry); err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc)
	go func() { told.registry.Describe(descs); close(descs) }()
	all := map[string]described{}
	for d := range descs {
		m := descPattern.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("not understood: %s", d)
		}
		if strings.HasPrefix(m[1], "ship_") {
			all[m[1]] = described{help: m[2], labels: strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' || r == ' ' })}
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d metrics: %v", len(all), all)
	}
	return all
}

var descPattern = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]*)", (?:unit: "[^"]*", )?constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}\}$`)

// inHistogram are the series that a histogram is made of.
var inHistogram = regexp.MustCompile(`_(bucket|sum|count)$`)

// query is a PromQL expression with where it stands.
type query struct{ where, text string }

var (
	metricName = regexp.MustCompile(`\bship_[a-z0-9_]+`)
	selector   = regexp.MustCompile(`(ship_[a-z0-9_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping   = regexp.MustCompile(`\b(?:by|without)\s*\(([^)]*)\)`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
)

// check says what is wrong with a query: metrics and labels that there are not,
// and brackets that do not match.
func (q query) check(all map[string]described) (wrong []string) {
	labels := map[string]bool{"le": true}
	names := metricName.FindAllString(q.text, -1)
	if len(names) == 0 {
		wrong = append(wrong, "names no metric of ship")
	}
	for _, name := range names {
		m, ok := find(all, name)
		if !ok {
			wrong = append(wrong, "there is no "+name)
		}
		for _, l := range m.labels {
			labels[l] = true
		}
	}
	for _, s := range selector.FindAllStringSubmatch(q.text, -1) {
		m, _ := find(all, s[1])
		for _, label := range matcher.FindAllStringSubmatch(s[2], -1) {
			if !slices.Contains(m.labels, label[1]) {
				wrong = append(wrong, fmt.Sprintf("%s has no label %s", s[1], label[1]))
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(q.text, -1) {
		for _, label := range strings.FieldsFunc(g[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !labels[label] && label != "instance" && label != "job" {
				wrong = append(wrong, "nothing has a label "+label)
			}
		}
	}
	return append(wrong, brackets(quoted.ReplaceAllString(q.text, ""))...)
}

// find looks a series up by the name that a query has for it. Histograms are
// those that measure seconds or money, and have no series of their plain name.
func find(all map[string]described, name string) (described, bool) {
	base := inHistogram.ReplaceAllString(name, "")
	m, ok := all[base]
	histogram := strings.HasSuffix(base, "_seconds") || strings.HasSuffix(base, "_usd")
	return m, ok && histogram == (base != name)
}

func brackets(text string) []string {
	var open []rune
	pairs := map[rune]rune{')': '(', ']': '[', '}': '{'}
	for _, r := range text {
		switch r {
		case '(', '[', '{':
			open = append(open, r)
		case ')', ']', '}':
			if len(open) == 0 || open[len(open)-1] != pairs[r] {
				return []string{"brackets do not match"}
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return []string{"a bracket is not closed"}
	}
	return nil
}

// alerts is a file of rules, strictly.
type alerts struct {
	Groups []struct {
		Name     string `yaml:"name"`
		Interval string `yaml:"interval"`
		Rules    []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

const alertsPath = "../../deploy/prometheus/ship.rules.yml"

func readAlerts(t *testing.T) alerts {
	t.Helper()
	f, err := os.Open(alertsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec := yaml.NewDecoder(f)
	dec.KnownFields(true)
	var a alerts
	if err := dec.Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAlerts: each rule asks for what there is, and tells somebody what to do.
func TestAlerts(t *testing.T) {
	t.Parallel()
	all, seen := allMetrics(t), map[string]bool{}
	duration := regexp.MustCompile(`^[0-9]+[smhd]$`)
	for _, g := range readAlerts(t).Groups {
		for _, r := range g.Rules {
			for _, wrong := range (query{r.Alert, r.Expr}).check(all) {
				t.Errorf("%s: %s", r.Alert, wrong)
			}
			if !strings.HasPrefix(r.Alert, "Ship") || seen[r.Alert] || !duration.MatchString(r.For) {
				t.Errorf("%q for %q", r.Alert, r.For)
			}
			seen[r.Alert] = true
			if s := r.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s has the severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || r.Annotations["remedy"] == "" {
				t.Errorf("%s does not say what it means and what to do", r.Alert)
			}
		}
	}
	doc := readDoc(t)
	for name := range seen {
		if !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("docs/observability.md does not explain %s", name)
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d alerts", len(seen))
	}
}

// panel is what a dashboard shows at one place.
type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ H, W, X, Y int }
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// TestDashboard: each panel asks for what there is, and none lies on another.
func TestDashboard(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../deploy/grafana/ship.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID    string  `json:"uid"`
		Title  string  `json:"title"`
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	all, used, taken := allMetrics(t), map[string]bool{}, map[[2]int]string{}
	for _, p := range board.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q lies on %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("%q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			for _, wrong := range (query{p.Title, target.Expr}).check(all) {
				t.Errorf("%s: %s in %s", p.Title, wrong, target.Expr)
			}
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				used[inHistogram.ReplaceAllString(name, "")] = true
			}
		}
	}
	if len(used) < 20 || board.UID == "" {
		t.Errorf("%d metrics are shown", len(used))
	}
}

func readDoc(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "observability.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestMetricsDoc: the table of docs/observability.md is what ship says of its
// metrics. With -update-docs it is written anew.
func TestMetricsDoc(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- metrics: made by go test ./cmd/ship -run TestMetricsDoc -update-docs -->\n", "<!-- /metrics -->"
	doc, all := readDoc(t), allMetrics(t)
	before, rest, ok := strings.Cut(doc, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("docs/observability.md has lost its marks")
	}
	var table strings.Builder
	table.WriteString("| metric | labels | what it says |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		labels := make([]string, 0, 3)
		for _, l := range all[name].labels {
			labels = append(labels, "`"+l+"`")
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", name, strings.Join(labels, ", "), all[name].help)
	}
	want := before + begin + "\n" + table.String() + "\n" + end + after
	switch {
	case *updateDocs:
		if err := os.WriteFile(filepath.Join("..", "..", "docs", "observability.md"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case want != doc:
		t.Error("docs/observability.md is not up to date; run go test ./cmd/ship -run TestMetricsDoc -update-docs")
	}
}

// TestQueryCheck: the check of queries finds what is wrong with them.
func TestQueryCheck(t *testing.T) {
	t.Parallel()
	all := allMetrics(t)
	for _, good := range []string{
		`sum by (ending) (rate(ship_turns_total{ending!="completed"}[5m])) > 0`,
		`histogram_quantile(0.95, sum by (le, platform) (rate(ship_first_answer_seconds_bucket[5m])))`,
	} {
		if wrong := (query{"", good}).check(all); len(wrong) > 0 {
			t.Errorf("%s: %q", good, wrong)
		}
	}
	for _, bad := range []string{
		`up == 0`, `rate(ship_turn_total[5m])`, `ship_turns_total{end="x"}`, `sum by (ends) (ship_turns_total)`, `sum(rate(ship_turns_total[5m])`,
		`ship_turns_total[5m)`, `ship_turns_total_bucket`,
	} {
		if (query{"", bad}).check(all) == nil {
			t.Errorf("%s is taken for good", bad)
		}
	}
}

// TestLabelsAreBounded: what platforms, boxes and inboxes say makes no series of
// its own.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	told := newTelemetry()
	heard := told.front.Heard("github")
	for i := range 1000 {
		name := fmt.Sprint("made-up-", i)
		told.sessions.Committed(t.Context(), session.Change{
			Read: []session.EventRead{{Kind: session.Kind(name)}},
			Dead: []session.DeadLetter{{Cause: name, Event: &session.Event{Kind: session.Kind(name)}}},
		})
		told.platform.answers.WithLabelValues(told.platform.host(name+".example.com"), fmt.Sprint(knownStatus(100+i))).Inc()
		heard(name, name, 0)
		told.boxes.count([]sandbox.Info{{State: sandbox.State(name)}})
		watchedQuota{m: told.store}.m.quotaWaits.WithLabelValues(quotaOf(name)).Inc()
	}
	families, err := told.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := len(f.GetMetric()); strings.HasPrefix(f.GetName(), "ship_") && n > (maxHosts+1)*70 {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
}

// TestAlertsSeeTheFirst: what an alert counts is there as a zero before it
// happens, for Prometheus sees no increase in what was not there.
func TestAlertsSeeTheFirst(t *testing.T) {
	t.Parallel()
	told := newTelemetry()
	families, err := told.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, f := range families {
		series[f.GetName()] = len(f.GetMetric())
	}
	for name, least := range map[string]int{
		"ship_dead_letters_total": 20, "ship_turns_total": 9, "ship_leases_total": 6, "ship_store_errors_total": 7,
	} {
		if series[name] < least {
			t.Errorf("%s begins with %d series, want %d", name, series[name], least)
		}
	}
}
