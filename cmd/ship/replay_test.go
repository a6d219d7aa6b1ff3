package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ship/session"
)

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "90m": now.Add(-90 * time.Minute), "2026-01-02T15:04:05Z": time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
	} {
		if got, err := moment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"yesterday", "-2h", "5", "2026-01-02"} {
		if got, err := moment(text, now); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// TestReplayByFilter: the flags narrow down what is meant, together, and a dry
// run changes nothing.
func TestReplayByFilter(t *testing.T) {
	t.Parallel()
	m := newMorgue(t)
	foreign := asking("from elsewhere")
	foreign.Event.Request.Thread.Platform = "linear"
	ids := m.bury(over("gh.1.7"), asking("first"), saying("second"), turnStep(2), session.DeadLetter{Cause: "no event", Raw: []byte("{")}, foreign)
	for _, c := range []struct {
		flags string
		want  []int // of ids
	}{
		{"--kind event", []int{0, 4}},
		{"--kind effect", []int{1, 2}},
		{"--kind say", []int{1}},
		{"--kind asked --platform linear", []int{4}},
		{"--platform linear", []int{4}},
		{"--platform github --kind asked", []int{0}},
		{"--platform worker", []int{2}},
		{"--since 2026-01-02T03:04:04Z", []int{4}},
		{"--since 1m", nil},
		{"--since 2026-01-02T03:04:00Z --cause panic", []int{0, 4}},
	} {
		out := m.wants(nil, append([]string{"deliveries", "drop", "--dry-run"}, strings.Fields(c.flags)...)...)
		for i, id := range ids {
			meant := slices.Contains(c.want, i)
			if strings.Contains(out, id+": gh.1.7: would drop") != meant {
				t.Errorf("%s: is %s meant? %t wanted:\n%s", c.flags, id, meant, out)
			}
		}
	}
	m.fails("--since is how long ago", "deliveries", "replay", "--since", "soon")
	m.fails("--all", "deliveries", "replay", "--dry-run")

	m.wants([]string{ids[0] + ": gh.1.7: would replay event asked"}, "deliveries", "replay", "--kind", "event", "--platform", "github", "--dry-run")
	m.fails("would not be replayed", "deliveries", "replay", ids[3], "--dry-run")
	if n, mail := len(m.letters()), len(m.inbox("gh.1.7")); n != len(ids) || mail != 0 {
		t.Errorf("after dry runs there are %d dead letters and %d events", n, mail)
	}
	m.wants([]string{ids[0] + ": gh.1.7: replayed event asked"}, "deliveries", "replay", "--kind", "event", "--platform", "github")
	if n, mail := len(m.letters()), len(m.inbox("gh.1.7")); n != len(ids)-1 || mail != 1 {
		t.Errorf("there are %d dead letters and %d events", n, mail)
	}
}
