package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ship/session"
)

// Vault is what a store keeps for gateways beside sessions.
type Vault interface {
	session.Vault
	session.Locker
}

// RunVault runs the contract of a session.Vault and session.Locker. open is as
// for RunStore.
func RunVault(t *testing.T, open func(t *testing.T) Vault) {
	for name, test := range map[string]func(*testing.T, Vault){
		"swaps":         swaps,
		"one swap wins": oneSwapWins,
		"values expire": valuesExpire,
		"locks":         locks,
		"ends with ctx": vaultEnds,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func swaps(t *testing.T, v Vault) {
	is := func(want string) int64 {
		t.Helper()
		got, version, err := v.Load(t.Context(), "acme")
		if err != nil || string(got) != want || (version == 0) != (want == "") {
			t.Fatalf("loaded %q, version %d, %v; want %q", got, version, err, want)
		}
		return version
	}
	swap := func(version int64, value string, want bool) {
		t.Helper()
		if got, err := v.Swap(t.Context(), "acme", version, []byte(value), 0); err != nil || got != want {
			t.Fatalf("swapped %q: %t, %v", value, got, err)
		}
	}
	is("")
	swap(1, "x", false) // there is none
	swap(0, "", true)   // nothing to remove
	swap(0, "one", true)
	first := is("one")
	swap(0, "one", true)  // its answer was lost
	swap(0, "two", false) // there is one
	swap(first, "two\x00", true)
	swap(first, "two\x00", true)
	swap(first, "three", false)
	second := is("two\x00")
	if second <= first {
		t.Errorf("version %d after %d", second, first)
	}
	swap(first, "", false)
	swap(second, "", true)
	swap(second, "", true)
	is("")
	swap(0, "four", true)
	if third := is("four"); third <= second {
		t.Errorf("version %d after %d and nothing", third, second)
	}
	swap(second, "five", false)
	if got, version, err := v.Load(t.Context(), "other"); err != nil || got != nil || version != 0 {
		t.Errorf("another: %q, %d, %v", got, version, err)
	}
}

func valuesExpire(t *testing.T, v Vault) {
	if ok, err := v.Swap(t.Context(), "acme", 0, []byte("x"), 20*time.Millisecond); err != nil || !ok {
		t.Fatal(ok, err)
	}
	await(t, "the value to be gone", func() bool {
		got, version, err := v.Load(t.Context(), "acme")
		return err == nil && got == nil && version == 0
	})
	if ok, err := v.Swap(t.Context(), "acme", 0, []byte("y"), time.Hour); err != nil || !ok {
		t.Error(ok, err)
	}
}

// oneSwapWins: of many that build on the same version.
func oneSwapWins(t *testing.T, v Vault) {
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			ok, err := v.Swap(t.Context(), "acme", 0, fmt.Append(nil, i), 0)
			if err != nil {
				t.Error(err)
			}
			if ok {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if n := won.Load(); n != 1 {
		t.Errorf("%d won", n)
	}
}

func locks(t *testing.T, v Vault) {
	lock := func(holder string, ttl time.Duration, want bool) {
		t.Helper()
		if got, err := v.Lock(t.Context(), "acme", holder, ttl); err != nil || got != want {
			t.Fatalf("%s: %t, %v", holder, got, err)
		}
	}
	unlock := func(holder string) {
		t.Helper()
		if err := v.Unlock(t.Context(), "acme", holder); err != nil {
			t.Fatal(err)
		}
	}
	unlock("me") // nothing to give back
	lock("me", time.Hour, true)
	lock("me", time.Hour, true)
	lock("you", time.Hour, false)
	unlock("you")
	lock("you", time.Hour, false)
	unlock("me")
	lock("you", 20*time.Millisecond, true)
	await(t, "the lock to lapse", func() bool {
		held, err := v.Lock(t.Context(), "acme", "me", time.Hour)
		return err == nil && held
	})
	unlock("you")
	lock("you", time.Hour, false)
}

func vaultEnds(t *testing.T, v Vault) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	_, _, loaded := v.Load(ctx, "acme")
	_, swapped := v.Swap(ctx, "acme", 0, []byte("x"), 0)
	_, locked := v.Lock(ctx, "acme", "me", time.Hour)
	for _, err := range []error{loaded, swapped, locked, v.Unlock(ctx, "acme", "me")} {
		if !errors.Is(err, gone) && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}
