package main

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"ship/sandbox/broker"
)

// metrics counts what boxes do at the broker. Labels are bounded: models and
// rules are those of the settings, codes and statuses a short list.
type metrics struct {
	calls   *prometheus.CounterVec
	usd     *prometheus.CounterVec
	tokens  *prometheus.CounterVec
	pushes  *prometheus.CounterVec
	refused *prometheus.CounterVec
	egress  *prometheus.CounterVec
	traffic *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c) // panics only for two of one name, which is a bug in the list below
		return c
	}
	return &metrics{
		calls:   counter("ship_model_calls_total", "Model calls by the provider's answer; status 0: none.", "provider", "model", "status"),
		usd:     counter("ship_model_usd_total", "Money spent on models.", "provider", "model"),
		tokens:  counter("ship_model_tokens_total", "Tokens, in and out.", "provider", "model", "direction"),
		pushes:  counter("ship_pushes_total", "Pushes let through, by the code host's answer.", "status"),
		refused: counter("ship_broker_refusals_total", "What boxes asked for and did not get.", "code"),
		egress:  counter("ship_egress_connections_total", "Connections of boxes to hosts, by the rule in sandbox.allow_hosts; rule none: refused.", "rule", "outcome"),
		traffic: counter("ship_egress_bytes_total", "Bytes from hosts (in) and to them (out).", "rule", "direction"),
	}
}

// Called implements broker.Observer.
func (m *metrics) Called(c broker.Call) {
	m.calls.WithLabelValues(c.Provider, c.Model, strconv.Itoa(c.Status)).Inc()
	m.usd.WithLabelValues(c.Provider, c.Model).Add(c.Usage.USD)
	m.tokens.WithLabelValues(c.Provider, c.Model, "in").Add(float64(c.Usage.Input))
	m.tokens.WithLabelValues(c.Provider, c.Model, "out").Add(float64(c.Usage.Output))
}

// Pushed implements broker.Observer.
func (m *metrics) Pushed(_ string, status int) {
	m.pushes.WithLabelValues(strconv.Itoa(status)).Inc()
}

// Refused implements broker.Observer.
func (m *metrics) Refused(code string) { m.refused.WithLabelValues(code).Inc() }

// Passed implements broker.EgressObserver.
func (m *metrics) Passed(p broker.Passage) {
	m.egress.WithLabelValues(p.Rule, p.Outcome).Inc()
	m.traffic.WithLabelValues(p.Rule, "in").Add(float64(p.In))
	m.traffic.WithLabelValues(p.Rule, "out").Add(float64(p.Out))
}
