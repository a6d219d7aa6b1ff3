package redis

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// vaultName is what a value or a lock may be called. No braces: they would
// choose another slot.
var vaultName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)

// Vault keeps small values that all gateways share, and locks. What has to
// stay secret is encrypted before it comes here.
type Vault struct{ store *Store }

// Vault returns the store's vault. It is as good as the store, and closes with
// it.
func (s *Store) Vault() *Vault { return &Vault{s} }

// Load returns the value under a name and its version; nil and 0 when there is
// none.
func (v *Vault) Load(ctx context.Context, name string) (value []byte, version int64, err error) {
	key, err := vaultKey("vault", name)
	if err != nil {
		return nil, 0, err
	}
	got, err := v.store.rdb.HMGet(ctx, key, "v", "d").Result()
	if err != nil {
		return nil, 0, fmt.Errorf("load %s: %w", name, err)
	}
	number, _ := got[0].(string)
	data, ok := got[1].(string)
	if !ok {
		return nil, 0, nil
	}
	if version, err = strconv.ParseInt(number, 10, 64); err != nil {
		return nil, 0, fmt.Errorf("load %s: version: %w", name, err)
	}
	return []byte(data), version, nil
}

// Swap replaces a value if its version is still the one given, 0 for none, and
// tells whether it did. Versions only rise. An empty value removes it; a ttl of
// zero keeps it for good. Repeating a swap whose answer was lost: true.
func (v *Vault) Swap(ctx context.Context, name string, version int64, value []byte, ttl time.Duration) (swapped bool, err error) {
	key, err := vaultKey("vault", name)
	if err != nil {
		return false, err
	}
	err = v.store.around(ctx, "swap", func() error {
		res, err := v.store.run(ctx, swapScript, []string{key}, version, value, wholeMS(ttl))
		swapped = res == int64(1)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("swap %s: %w", name, err)
	}
	return swapped, nil
}

// Lock takes a lock for a holder, or reports that another has it. The holder
// may take it again, and has it for ttl from then.
func (v *Vault) Lock(ctx context.Context, name, holder string, ttl time.Duration) (held bool, err error) {
	key, err := vaultKey("lock", name)
	if err != nil {
		return false, err
	}
	res, err := v.store.run(ctx, lockScript, []string{key}, holder, max(wholeMS(ttl), 1))
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", name, err)
	}
	return res == int64(1), nil
}

// Unlock gives a lock back. One that is another's stays.
func (v *Vault) Unlock(ctx context.Context, name, holder string) error {
	key, err := vaultKey("lock", name)
	if err != nil {
		return err
	}
	if _, err := v.store.run(ctx, unlockScript, []string{key}, holder); err != nil {
		return fmt.Errorf("unlock %s: %w", name, err)
	}
	return nil
}

func vaultKey(kind, name string) (string, error) {
	if !vaultName.MatchString(name) {
		return "", fmt.Errorf("bad name %q for a %s", name, kind)
	}
	return tag(shardOf(name)) + ":" + kind + ":" + name, nil
}

// wholeMS rounds up: less than a millisecond is not for good.
func wholeMS(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}
