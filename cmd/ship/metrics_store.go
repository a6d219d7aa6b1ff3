package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ship/session"
)

// storeMetrics count what is asked of Redis.
type storeMetrics struct {
	seconds    *prometheus.HistogramVec
	errors     *prometheus.CounterVec
	quotaWaits *prometheus.CounterVec
	quotaTime  *prometheus.CounterVec
}

func newStoreMetrics(r prometheus.Registerer) *storeMetrics {
	f := factory{r}
	m := &storeMetrics{
		seconds:    f.histogram("ship_store_seconds", "Time that a call to Redis took, with its repetitions.", short(), "op"),
		errors:     f.counter("ship_store_errors_total", "Calls that Redis did not answer, or refused.", "op"),
		quotaWaits: f.counter("ship_quota_waits_total", "How often what a platform allows was used up, so that a call had to wait.", "platform"),
		quotaTime:  f.counter("ship_quota_wait_seconds_total", "How long calls were told to wait for that.", "platform"),
	}
	for _, op := range []string{"append", "due", "claim", "renew", "read", "commit", "spend"} {
		m.errors.WithLabelValues(op) // from nothing to one is no increase for Prometheus
	}
	return m
}

func (m *storeMetrics) took(op string, began time.Time, err error) {
	m.seconds.WithLabelValues(op).Observe(time.Since(began).Seconds())
	if isFault(err) {
		m.errors.WithLabelValues(op).Inc()
	}
}

// isFault: Redis failed, and did not just say no.
func isFault(err error) bool {
	for _, answer := range []error{nil, session.ErrNotDue, session.ErrConflict, session.ErrTooNew, session.ErrLeaseLost, context.Canceled} {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}

// watchedStore counts what the work on sessions rests on.
type watchedStore struct {
	backend
	m *storeMetrics
}

// Append implements session.Inbox.
func (s watchedStore) Append(ctx context.Context, d session.Delivery) (session.Receipt, error) {
	began := time.Now()
	receipt, err := s.backend.Append(ctx, d)
	s.m.took("append", began, err)
	return receipt, err
}

// Due implements session.Store.
func (s watchedStore) Due(ctx context.Context, limit int) ([]session.ID, error) {
	began := time.Now()
	ids, err := s.backend.Due(ctx, limit)
	s.m.took("due", began, err)
	return ids, err
}

// Claim implements session.Store.
func (s watchedStore) Claim(ctx context.Context, id session.ID, token string, lease time.Duration) (session.Claim, error) {
	began := time.Now()
	c, err := s.backend.Claim(ctx, id, token, lease)
	s.m.took("claim", began, err)
	return c, err
}

// Renew implements session.Store.
func (s watchedStore) Renew(ctx context.Context, l session.Lease, d time.Duration) (int64, error) {
	began := time.Now()
	newest, err := s.backend.Renew(ctx, l, d)
	s.m.took("renew", began, err)
	return newest, err
}

// Read implements session.Store.
func (s watchedStore) Read(ctx context.Context, id session.ID, after int64) ([]session.Event, error) {
	began := time.Now()
	events, err := s.backend.Read(ctx, id, after)
	s.m.took("read", began, err)
	return events, err
}

// Commit implements session.Store.
func (s watchedStore) Commit(ctx context.Context, l session.Lease, c session.Commit) error {
	began := time.Now()
	err := s.backend.Commit(ctx, l, c)
	s.m.took("commit", began, err)
	return err
}

// Spend implements session.Ledger.
func (s watchedStore) Spend(ctx context.Context, account string, u session.Usage) (session.Usage, error) {
	began := time.Now()
	total, err := s.backend.Spend(ctx, account, u)
	s.m.took("spend", began, err)
	return total, err
}

// watchedQuota counts how often a platform's allowance was used up.
type watchedQuota struct {
	session.Quota
	m *storeMetrics
}

// Take implements session.Quota.
func (q watchedQuota) Take(ctx context.Context, account string, a session.Allowance) (time.Duration, error) {
	wait, err := q.Quota.Take(ctx, account, a)
	if wait > 0 {
		q.m.quotaWaits.WithLabelValues(quotaOf(account)).Inc()
		q.m.quotaTime.WithLabelValues(quotaOf(account)).Add(wait.Seconds())
	}
	return wait, err
}

// quotaOf is whose allowance an account is. Linear's are named after a
// workspace's id alone.
func quotaOf(account string) string {
	if strings.HasPrefix(account, "slack.") {
		return "slack"
	}
	return "linear"
}
