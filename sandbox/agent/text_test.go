package agent

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestScrub(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"at https://user:pw@host/v1":        "at https://host/v1",
		"at https://tok@host/v1":            "at https://host/v1",
		"GET /x?api_key=abc&y=1":            "GET /x?api_key=…&y=1",
		"GET /x?a=1&access_token=abc":       "GET /x?a=1&access_token=…",
		"Authorization: Bearer sk-12345678": "Authorization: Bearer …",
		"mail me@example.com about basic x": "mail me@example.com about basic x",
		"https://host/a/@scope/pkg":         "https://host/a/@scope/pkg",
	} {
		if got := scrub(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("https://u:p@h/?key=1\n\x00é", 7)
	f.Add("ééééé", 4)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(max(n, 8), 1000)
		got := oneLine(scrub(s), n)
		if len(got) > n || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00") {
			t.Errorf("%q became %q", s, got)
		}
		if c := clip(s, n); len(c) > n || (len(s) <= n && c != s) {
			t.Errorf("%q was clipped to %q", s, c)
		}
	})
}

func TestProgressInWords(t *testing.T) {
	t.Parallel()
	var calls []Call
	for _, title := range strings.Split("a b c d e f g h i", " ") {
		calls = append(calls, Call{Tool: "bash", Title: title, Status: CallDone}, Call{Tool: "todowrite", Status: CallDone})
	}
	calls = append(calls, Call{Tool: "edit", Title: strings.Repeat("x", 500), Status: CallFailed})
	got := steps(calls)
	want := []string{"bash: c", "bash: d", "bash: e", "bash: f", "bash: g", "bash: h", "bash: i"}
	if diff := cmp.Diff(want, got[:7]); diff != "" || len(got) != maxSteps {
		t.Errorf("%d steps: %s", len(got), diff)
	}
	if last := got[7]; len(last) > maxStep+len(" (failed)") || !strings.HasSuffix(last, "… (failed)") {
		t.Errorf("last step %q", last)
	}
	for _, tt := range []struct {
		snap Snapshot
		want string
	}{
		{Snapshot{}, "starting"},
		{Snapshot{Started: true}, "thinking"},
		{Snapshot{Started: true, Calls: []Call{{Tool: "bash", Title: "make", Status: CallRunning}}}, "bash: make"},
		{Snapshot{Started: true, Calls: []Call{{Tool: "bash", Title: "make", Status: CallDone}}}, "thinking"},
		{Snapshot{Started: true, Status: Status{Phase: Retrying, Attempt: 1}}, "waiting for the model (attempt 2)"},
		{Snapshot{Started: true, Finished: true}, "finished"},
	} {
		if got := doing(tt.snap); got != tt.want {
			t.Errorf("doing %q, want %q", got, tt.want)
		}
	}
}

func TestPlainSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Second: "1 second", 90 * time.Second: "90 seconds", 5 * time.Minute: "5 minutes",
	} {
		if got := plain(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
