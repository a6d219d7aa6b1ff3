package linear

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"ship/session"
)

// Priority says what may wait for what.
type Priority int

// The priorities, the least urgent first.
const (
	// Moving is progress: actions, plans, ephemeral thoughts. What comes later
	// says more.
	Moving Priority = iota
	// Thinking is the first thought in a session, due within ten seconds.
	Thinking
	// Asking is a question to a person.
	Asking
	// Settling is how it ended: a response or an error.
	Settling
	priorities
)

// held is the share of a bucket that each leaves to the more urgent. So
// progress comes to rest first, and the last of all is for telling the end.
var held = [priorities]float64{Moving: 0.4, Thinking: 0.1, Asking: 0.05, Settling: 0}

const (
	// maxCost of one query, in points. Linear refuses more.
	maxCost = 10_000
	// maxBlock is how long nobody asks after Linear refused for the rate. Its
	// buckets are full again at the time it tells, and usable long before.
	maxBlock = 30 * time.Second
)

// window is what Linear's limits are for.
const window = time.Hour

// limits of an OAuth app until an answer tells others: requests and points of
// complexity in an hour.
var limits = [2]int64{5_000, 2_000_000}

// allowance is what to ask for a request.
func allowance(p Priority, cost int) session.Allowance {
	return session.Allowance{Need: [2]int64{1, int64(cost)}, Limit: limits, Window: window, Share: held[p]}
}

// Governor shares out what Linear lets each credential do, among all that want
// to and over all gateways. It is safe for concurrent use.
type Governor struct {
	quota session.Quota
	queue *session.Queue
}

// NewGovernor returns a governor over a quota.
func NewGovernor(q session.Quota) *Governor {
	return &Governor{quota: q, queue: session.NewQueue(q)}
}

// Acquire returns when a request of a cost, in points of complexity, may be
// made with a credential, or with the cause of ctx's end. A credential is a
// name, not the secret: that of the workspace. What is to be said is best made
// up afterwards, for it may have been a while.
func (g *Governor) Acquire(ctx context.Context, credential string, p Priority, cost int) error {
	if err := check(p, cost); err != nil {
		return err
	}
	return g.queue.Wait(ctx, session.Demand{Account: credential, Allowance: allowance(p, cost)})
}

// Try is Acquire for what is not worth waiting for, such as progress, of which
// only the newest counts: it takes a request's share now, or tells how long it
// would be until it can be had and takes nothing.
func (g *Governor) Try(ctx context.Context, credential string, p Priority, cost int) (wait time.Duration, err error) {
	if err := check(p, cost); err != nil {
		return 0, err
	}
	return g.queue.Try(ctx, session.Demand{Account: credential, Allowance: allowance(p, cost)})
}

func check(p Priority, cost int) error {
	if p < 0 || p >= priorities || cost < 0 || cost > maxCost {
		return fmt.Errorf("linear: no request has priority %d and a cost of %d", p, cost)
	}
	return nil
}

// Observe learns from the header of an answer, and from its status as
// StatusOf reads it. Linear names limits, what is left of them, and when that
// is all there again, in ms since 1970. May be called twice.
func (g *Governor) Observe(ctx context.Context, credential string, h http.Header, status int) error {
	var limit, left [2]int64
	for i, kind := range [2]string{"Requests", "Complexity"} {
		l, known := amount(h, kind+"-Limit")
		r, also := amount(h, kind+"-Remaining")
		if known && also && l > 0 {
			limit[i], left[i] = l, min(r, l)
		}
	}
	var block time.Duration
	if status == http.StatusTooManyRequests {
		block = blockFor(h, time.Now())
	}
	if limit == [2]int64{} && block == 0 {
		return nil
	}
	if err := g.quota.Tell(ctx, credential, session.Rate{Limit: limit, Left: left, Window: window, Block: block}); err != nil {
		return fmt.Errorf("learn linear's rate: %w", err)
	}
	return nil
}

func amount(h http.Header, name string) (int64, bool) {
	n, err := strconv.ParseInt(h.Get("X-RateLimit-"+name), 10, 64)
	return n, err == nil && n >= 0 && n < 1<<50
}

// blockFor is how long to leave Linear alone after it refused: until what is
// used up is there again, if that is soon.
func blockFor(h http.Header, now time.Time) time.Duration {
	block := maxBlock
	for _, kind := range []string{"Requests", "Complexity", "Endpoint-Requests"} {
		left, known := amount(h, kind+"-Remaining")
		reset, also := amount(h, kind+"-Reset")
		if known && also && left == 0 {
			block = min(block, max(time.UnixMilli(reset).Sub(now), time.Second))
		}
	}
	return block
}

// StatusOf reads an answer's status. Linear refuses for the rate with a 400 and
// says so in the body; that is a 429. An authentication error is a 401,
// whatever it comes with.
func StatusOf(status int, body []byte) int {
	if status != http.StatusOK && status != http.StatusBadRequest {
		return status
	}
	var answer struct {
		Errors []struct {
			Extensions struct {
				Code   string `json:"code"`
				Status int    `json:"statusCode"`
			} `json:"extensions"`
		} `json:"errors"`
	}
	var shape *json.UnmarshalTypeError
	if err := json.Unmarshal(body, &answer); err != nil && !errors.As(err, &shape) {
		return status
	}
	for _, e := range answer.Errors {
		switch {
		case e.Extensions.Code == "RATELIMITED":
			return http.StatusTooManyRequests
		case e.Extensions.Code == "AUTHENTICATION_ERROR", e.Extensions.Status == http.StatusUnauthorized:
			return http.StatusUnauthorized
		}
	}
	return status
}
