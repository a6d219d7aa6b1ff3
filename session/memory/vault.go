package memory

import (
	"bytes"
	"context"
	"sync"
	"time"

	"ship/session"
)

// Vault is a session.Vault and a session.Locker for one process, which forgets
// everything with it. The zero Vault is empty and ready.
type Vault struct {
	mu     sync.Mutex
	values map[string]kept // guarded by mu
	locks  map[string]lock // guarded by mu
	newest int64           // guarded by mu
}

type kept struct {
	value   []byte
	version int64
	ends    time.Time // zero: never
}

type lock struct {
	holder string
	ends   time.Time
}

var (
	_ session.Vault  = (*Vault)(nil)
	_ session.Locker = (*Vault)(nil)
)

// get returns what is there and has not expired. The caller holds mu.
func (v *Vault) get(name string) kept {
	k := v.values[name]
	if !k.ends.IsZero() && !time.Now().Before(k.ends) {
		return kept{}
	}
	return k
}

// Load implements session.Vault.
func (v *Vault) Load(ctx context.Context, name string) ([]byte, int64, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.get(name)
	return bytes.Clone(k.value), k.version, nil
}

// Swap implements session.Vault.
func (v *Vault) Swap(ctx context.Context, name string, version int64, value []byte, ttl time.Duration) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	old := v.get(name)
	if old.version != version {
		return len(value) == 0 && old.version == 0 || len(value) > 0 && bytes.Equal(old.value, value), nil
	}
	if len(value) == 0 {
		delete(v.values, name)
		return true, nil
	}
	v.newest++
	k := kept{value: bytes.Clone(value), version: v.newest}
	if ttl > 0 {
		k.ends = time.Now().Add(ttl)
	}
	if v.values == nil {
		v.values = make(map[string]kept)
	}
	v.values[name] = k
	return true, nil
}

// Lock implements session.Locker.
func (v *Vault) Lock(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if l, ok := v.locks[name]; ok && l.holder != holder && now.Before(l.ends) {
		return false, nil
	}
	if v.locks == nil {
		v.locks = make(map[string]lock)
	}
	v.locks[name] = lock{holder, now.Add(ttl)}
	return true, nil
}

// Unlock implements session.Locker.
func (v *Vault) Unlock(ctx context.Context, name, holder string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.locks[name].holder == holder {
		delete(v.locks, name)
	}
	return nil
}
