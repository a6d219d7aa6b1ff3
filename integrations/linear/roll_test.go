package linear

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"ship/session/memory"
)

// TestRollsUnderContention: sessions that begin at once, each told of twice and
// through several gateways, are all on the roll.
func TestRollsUnderContention(t *testing.T) {
	onBoth(t, func(t *testing.T, v vault) {
		const sessions = 12
		var all sync.WaitGroup
		for i := range 2 * sessions {
			all.Go(func() {
				s := thread{org, fmt.Sprintf("s%d", i%sessions), issueID}
				if err := (rolls{v}).add(t.Context(), s, now.Add(time.Duration(i%sessions)*time.Second)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for since, want := range map[time.Time]int{now: sessions, now.Add(9 * time.Second): 3, now.Add(time.Hour): 0} {
			if n, err := (rolls{v}).started(t.Context(), org, issueID, since); err != nil || n != want {
				t.Errorf("%d began since %s, want %d; %v", n, since, want, err)
			}
		}
		if n, err := (rolls{v}).started(t.Context(), org, "another", now); err != nil || n != 0 {
			t.Errorf("on another issue %d, %v", n, err)
		}
	})
}

// TestRollsAreBounded: the newest are kept, and nothing for a session that is
// about no issue.
func TestRollsAreBounded(t *testing.T) {
	t.Parallel()
	r := rolls{&memory.Vault{}}
	for i := range maxRoll + 5 {
		if err := r.add(t.Context(), thread{org, fmt.Sprintf("s%d", i), issueID}, now); err != nil {
			t.Fatal(err)
		}
	}
	all, err := r.of(t.Context(), org, issueID)
	if err != nil || len(all) != maxRoll || all[0].Session != "s5" || all[maxRoll-1].Session != "s34" {
		t.Errorf("%d from %v, %v", len(all), all[0], err)
	}
	if err := (rolls{}).add(t.Context(), thread{org, "s", ""}, now); err != nil { // asks no vault
		t.Error(err)
	}
}

// TestRollsOutliveDamage: what cannot be read is not in the way.
func TestRollsOutliveDamage(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{"{", `[{"s":"../x","b":1}]`, "null", `{"s":"a"}`} {
		v := &memory.Vault{}
		if _, err := v.Swap(t.Context(), rollName(org, issueID), 0, []byte(damage), 0); err != nil {
			t.Fatal(err)
		}
		if err := (rolls{v}).add(t.Context(), thread{org, sessionID, issueID}, now); err != nil {
			t.Fatal(err)
		}
		all, err := rolls{v}.of(t.Context(), org, issueID)
		if err != nil || len(all) != 1 || all[0] != (entry{sessionID, now.UnixMilli()}) {
			t.Errorf("after %s: %v, %v", damage, all, err)
		}
	}
}

// stolen is a vault in which others are always faster.
type stolen struct{ memory.Vault }

func (*stolen) Swap(context.Context, string, int64, []byte, time.Duration) (bool, error) {
	return false, nil
}

func TestContentionIsBounded(t *testing.T) {
	t.Parallel()
	if err := (rolls{&stolen{}}).add(t.Context(), thread{org, sessionID, issueID}, now); !errors.Is(err, errContended) {
		t.Errorf("got %v", err)
	}
}
