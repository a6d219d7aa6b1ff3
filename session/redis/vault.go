package redis

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"ship/session"
)

// vaultName is what a value or a lock may be called. No braces: they would
// choose another slot.
var vaultName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)

// Vault is a session.Vault and a session.Locker.
type Vault struct{ store *Store }

var (
	_ session.Vault  = (*Vault)(nil)
	_ session.Locker = (*Vault)(nil)
)

// Vault returns the store's vault. It is as good as the store, and closes with
// it.
func (s *Store) Vault() *Vault { return &Vault{s} }

// Load implements session.Vault. Names are letters, digits, dot, dash and
// underscore, for locks as well.
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

// Swap implements session.Vault.
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

// Lock implements session.Locker.
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

// Unlock implements session.Locker.
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
