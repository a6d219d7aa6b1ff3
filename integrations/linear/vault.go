package linear

import (
	"context"
	"time"
)

// Vault keeps small values that all gateways share. session/redis has one, and
// MemoryVault is one. What has to stay secret is sealed before it comes here.
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
