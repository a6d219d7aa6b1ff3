package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"ship/sandbox"
	"ship/sandbox/chaos"
	"ship/sandbox/preview"
)

// anySeed is what --chaos means without a seed.
const anySeed = "any"

// disturbance makes the boxes of one process fail, and counts how. A nil one
// leaves them alone.
type disturbance struct {
	seed   uint64
	metric *prometheus.CounterVec

	mu     sync.Mutex
	struck map[chaos.Fault]int
}

// newDisturbance is what --chaos asks for. Nobody shall have it by mistake, so
// that the settings have to allow it as well.
func newDisturbance(flag string, s SandboxSettings, r prometheus.Registerer) (*disturbance, error) {
	if flag == "" {
		return nil, nil
	}
	if !s.Chaos {
		return nil, errors.New("--chaos makes boxes fail, also those with work in them, and the settings do not allow it: set sandbox.chaos to true (or SHIP_SANDBOX_CHAOS=true) where no work is done that matters")
	}
	d := &disturbance{
		seed: rand.Uint64N(1_000_000), struck: map[chaos.Fault]int{},
		metric: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ship_chaos_faults_total", Help: "Faults that --chaos made, by kind."}, []string{"fault"}),
	}
	if flag != anySeed {
		var err error
		if d.seed, err = strconv.ParseUint(flag, 10, 64); err != nil {
			return nil, fmt.Errorf("--chaos=%s: the seed has to be a number, as ship prints it", flag)
		}
	}
	return d, r.Register(d.metric)
}

// before stands before the boxes of a provider. Who looks into a box sees it as
// it is.
func (d *disturbance) before(all boxes, log *slog.Logger) boxes {
	if d == nil {
		return all
	}
	log.Warn("boxes are made to fail", "seed", d.seed)
	return disturbed{chaos.New(chaos.Config{Boxes: all, Seed: d.seed, OnFault: d.count, Logger: log.With("part", "chaos")}), all}
}

// disturbed are boxes that fail.
type disturbed struct {
	sandbox.Provider
	preview.Boxes
}

func (d *disturbance) count(_ string, f chaos.Fault) {
	d.metric.WithLabelValues(string(f)).Inc()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.struck[f]++
}

// sum says at the end what was done, every kind of it.
func (d *disturbance) sum(log *slog.Logger) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	args := []any{"seed", d.seed}
	for _, f := range chaos.Kinds() {
		args = append(args, string(f), d.struck[f])
	}
	log.Info("boxes were made to fail", args...)
}
