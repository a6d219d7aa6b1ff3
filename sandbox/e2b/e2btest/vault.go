package e2btest

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// Vault is an e2b.Vault in memory. The zero value is empty.
type Vault struct {
	mu     sync.Mutex
	values map[string]kept // guarded by mu
	newest int64           // guarded by mu
}

type kept struct {
	value   []byte
	version int64
}

// Load implements e2b.Vault.
func (v *Vault) Load(ctx context.Context, name string) ([]byte, int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.values[name]
	return bytes.Clone(k.value), k.version, context.Cause(ctx)
}

// Swap implements e2b.Vault. Nothing expires.
func (v *Vault) Swap(ctx context.Context, name string, version int64, value []byte, _ time.Duration) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	old := v.values[name]
	if old.version != version {
		return len(value) > 0 && bytes.Equal(old.value, value), nil
	}
	if v.values == nil {
		v.values = map[string]kept{}
	}
	v.newest++
	v.values[name] = kept{bytes.Clone(value), v.newest}
	if len(value) == 0 {
		delete(v.values, name)
	}
	return true, nil
}

// Values are all that is kept, as it is kept.
func (v *Vault) Values() [][]byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all [][]byte
	for _, k := range v.values {
		all = append(all, bytes.Clone(k.value))
	}
	return all
}

// Lose forgets all that is kept.
func (v *Vault) Lose() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.values)
}
