package github

import (
	"strings"
	"testing"

	"ship/session"
)

// TestWhoseCheckRun: the session is in the external id; where it is spoken
// about, GitHub says, or the session's own name.
func TestWhoseCheckRun(t *testing.T) {
	t.Parallel()
	const run = `{"action":"rerequested","installation":{"id":1},"repository":{"id":2,"name":"widgets","owner":{"login":"acme"}},` +
		`"check_run":{"id":9,"name":"NAME","external_id":"ID","app":{"id":APP},"completed_at":WHEN,"pull_requests":PULLS},"sender":{"login":"alice","id":6}}`
	tests := []struct {
		name, check, id, app, pulls string
		want                        session.ID
		thread                      string
	}{
		{"with its pull request", "ship", "gh.2.4", "4242", `[{"number":12}]`, "gh.2.4", "1/2/acme/widgets/pull/12"},
		{"without", "ship", "gh.2.4", "4242", `[]`, "gh.2.4", "1/2/acme/widgets/issues/4"},
		{"started elsewhere", "ship", "li.abc.1", "4242", `[{"number":12}]`, "li.abc.1", "1/2/acme/widgets/pull/12"},
		{"started elsewhere, nowhere to answer", "ship", "li.abc.1", "4242", `[]`, "", ""},
		{"of another repository", "ship", "gh.3.4", "4242", `[{"number":12}]`, "", ""},
		{"of another app", "ship", "gh.2.4", "1", `[]`, "", ""},
		{"of another name", "lint", "gh.2.4", "4242", `[]`, "", ""},
		{"without a session", "ship", "", "4242", `[]`, "", ""},
		{"with a strange one", "ship", "gh 2 4", "4242", `[]`, "", ""},
	}
	r := newTestReceiver(t, secret)
	for _, tt := range tests {
		for _, when := range []string{"null", `"2026-11-16T00:00:00Z"`} {
			body := strings.NewReplacer("NAME", tt.check, "ID", tt.id, "APP", tt.app, "PULLS", tt.pulls, "WHEN", when).Replace(run)
			d := signed("check_run", body)
			got, err := r.Receive(t.Context(), d.Header, d.Body)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if tt.want == "" {
				if len(got.Deliveries) != 0 || got.Outcome != outcomeNotOurs {
					t.Errorf("%s: outcome %q", tt.name, got.Outcome)
				}
				continue
			}
			if len(got.Deliveries) != 1 || got.Deliveries[0].Session != tt.want || got.Deliveries[0].Event.Request.Thread.Key != tt.thread {
				t.Errorf("%s: got %+v", tt.name, got)
			}
		}
	}
}
