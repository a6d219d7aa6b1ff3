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
	for _, op := range []string{"append", "due", "claim", "renew", "read", "commit", "spend", "totals"} {
		m.errors.WithLabelValues(op) // from nothing to one is no increase for Prometheus
	}
	return m
}

// took is deferred by a call that begins; err is what it will have come to.
func (m *storeMetrics) took(op string, began time.Time, err *error) {
	m.seconds.WithLabelValues(op).Observe(time.Since(began).Seconds())
	if isFault(*err) {
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
func (s watchedStore) Append(ctx context.Context, d session.Delivery) (_ session.Receipt, err error) {
	defer s.m.took("append", time.Now(), &err)
	return s.backend.Append(ctx, d)
}

// Due implements session.Store.
func (s watchedStore) Due(ctx context.Context, limit int) (_ []session.ID, err error) {
	defer s.m.took("due", time.Now(), &err)
	return s.backend.Due(ctx, limit)
}

// Claim implements session.Store.
func (s watchedStore) Claim(ctx context.Context, id session.ID, token string, lease time.Duration) (_ session.Claim, err error) {
	defer s.m.took("claim", time.Now(), &err)
	return s.backend.Claim(ctx, id, token, lease)
}

// Renew implements session.Store.
func (s watchedStore) Renew(ctx context.Context, l session.Lease, d time.Duration) (_ int64, err error) {
	defer s.m.took("renew", time.Now(), &err)
	return s.backend.Renew(ctx, l, d)
}

// Read implements session.Store.
func (s watchedStore) Read(ctx context.Context, id session.ID, after int64) (_ []session.Event, err error) {
	defer s.m.took("read", time.Now(), &err)
	return s.backend.Read(ctx, id, after)
}

// Commit implements session.Store.
func (s watchedStore) Commit(ctx context.Context, l session.Lease, c session.Commit) (err error) {
	defer s.m.took("commit", time.Now(), &err)
	return s.backend.Commit(ctx, l, c)
}

// Spend implements session.Ledger.
func (s watchedStore) Spend(ctx context.Context, account string, u session.Usage) (_ session.Usage, err error) {
	defer s.m.took("spend", time.Now(), &err)
	return s.backend.Spend(ctx, account, u)
}

// Totals implements session.Ledger.
func (s watchedStore) Totals(ctx context.Context, accounts ...string) (_ []session.Usage, err error) {
	defer s.m.took("totals", time.Now(), &err)
	return s.backend.Totals(ctx, accounts...)
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
