package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ship/sandbox/broker"
)

func TestAllowHosts(t *testing.T) {
	t.Parallel()
	s, err := readSettings("", []string{"SHIP_SANDBOX_ALLOW_HOSTS=registries,*.example.com", "SHIP_SANDBOX_MAX_TRAFFIC=1GiB"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Sandbox.egress(nil)
	if err != nil || e.Hosts.Empty() || e.MaxBytes != 1<<30 {
		t.Errorf("egress is %+v, %v", e, err)
	}
	if env := s.Sandbox.agentEnv(); !slices.Contains(env, "https_proxy=http://127.0.0.1:4010") || !slices.Contains(env, "NO_PROXY=localhost,127.0.0.1,::1") {
		t.Errorf("the agent is told %q", env)
	}
	if rules := s.Sandbox.reachable(); !slices.Contains(rules, "pypi.org") || !slices.Contains(rules, "*.example.com") {
		t.Errorf("the agent may reach %q", rules)
	}
	s, err = readSettings("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := s.Sandbox.egress(nil); err != nil || !e.Hosts.Empty() || s.Sandbox.agentEnv() != nil {
		t.Errorf("without settings: %+v, %v, %q", e, err, s.Sandbox.agentEnv())
	}
	_, err = readSettings("", []string{"SHIP_SANDBOX_ALLOW_HOSTS=npm,127.0.0.1,https://example.com"})
	for _, want := range []string{"sandbox.allow_hosts", `"npm" is not a full name`, `"127.0.0.1" is not a public address`, `"https://example.com"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("wrong rules: %v, want %q", err, want)
		}
	}
}

func TestEgressMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := newMetrics(r)
	m.Passed(broker.Passage{Rule: "*.example.com", Outcome: "ok", In: 7, Out: 3, Took: time.Second})
	m.Passed(broker.Passage{Rule: "none", Outcome: "ship_host_not_allowed"})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			name := f.GetName()
			for _, l := range metric.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = metric.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"ship_egress_connections_total ok *.example.com":           1,
		"ship_egress_connections_total ship_host_not_allowed none": 1,
		"ship_egress_bytes_total in *.example.com":                 7,
		"ship_egress_bytes_total out *.example.com":                3,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v in %v", name, got[name], want, got)
		}
	}
}
