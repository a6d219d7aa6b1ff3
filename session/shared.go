package session

import (
	"context"
	"errors"
	"time"
)

// Vault keeps small values that all gateways share. What has to stay secret is
// sealed before it comes here.
type Vault interface {
	// Load returns the value under a name and its version; nil and 0 when there
	// is none.
	Load(ctx context.Context, name string) (value []byte, version int64, err error)
	// Swap replaces a value if its version is still the one given, 0 for none,
	// and tells whether it did. Versions only rise, even over a value that was
	// gone in between. A ttl of zero keeps it for good; an empty value removes
	// it. Repeating a swap whose answer was lost: true.
	Swap(ctx context.Context, name string, version int64, value []byte, ttl time.Duration) (swapped bool, err error)
}

// Locker keeps gateways from doing the same thing at once. A lock is good for
// its ttl and no longer, so it saves work and protects nothing: that is what
// Swap is for.
type Locker interface {
	// Lock takes a lock for a holder, or reports that another has it. The
	// holder may take it again, and has it for ttl from then.
	Lock(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error)
	// Unlock gives it back. A lock that is another's stays.
	Unlock(ctx context.Context, name, holder string) error
}

// Quota shares out, over all gateways, what a platform lets one account do.
//
// An account has two buckets, for what is counted in two ways, such as requests
// and points of complexity. A bucket holds what may be done in a window of
// time, and fills up at that rate: so within the first window it may give twice
// of what it holds, unless the platform says how much there is.
type Quota interface {
	// Take takes what is needed from both buckets if that leaves a share of
	// each, or tells how long to wait before asking again. Repeated, it may
	// take twice. ErrNoWindow.
	Take(ctx context.Context, account string, a Allowance) (wait time.Duration, err error)
	// Tell corrects the buckets by what the platform says. It does not know yet
	// of requests on their way to it, so they are corrected downwards only. May
	// be repeated. ErrNoWindow.
	Tell(ctx context.Context, account string, r Rate) error
}

// Allowance is what somebody asks of an account.
type Allowance struct {
	// Need is what to take from each bucket. What is more than one can hold
	// empties it.
	Need [2]int64
	// Limit is what a bucket holds when the account is new. Later it is what
	// the account began with, or what Tell said.
	Limit [2]int64
	// Window is how long an empty bucket takes to be full, a millisecond at the
	// least. Everybody names the same for an account, for it is not kept.
	Window time.Duration
	// Share of a bucket, 0 to 1, that has to be left afterwards. What does not
	// fit beside it waits for a full bucket.
	Share float64
}

// Rate is what a platform says of an account.
type Rate struct {
	// Limit is what may be done in a window, zero where it was not named, and
	// Left what of that is left.
	Limit, Left [2]int64
	// Window as in Allowance.
	Window time.Duration
	// Block is how long nobody may take anything, from now. It does not shorten
	// what was said before.
	Block time.Duration
}

// ErrNoWindow is returned for an allowance, or a rate, whose window is shorter
// than a millisecond.
var ErrNoWindow = errors.New("a quota needs a window of time")
