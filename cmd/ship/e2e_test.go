package main

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/github/githubtest"
)

// TestOneTurn: a signed comment becomes a draft pull request; the same comment
// delivered again, and again under other ids, changes nothing.
func TestOneTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.start()
	d := r.says(r.issue, "/ship fix the widgets")

	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if status := r.send(d); status != http.StatusOK {
				t.Errorf("a delivery was answered with %d", status)
			}
		})
	}
	wg.Wait()
	r.ended(r.issue, patience)
	before := r.world()
	again := githubtest.Delivery{Header: d.Header.Clone(), Body: d.Body}
	again.Header.Set("X-GitHub-Delivery", "11111111-2222-3333-4444-555555555555")
	for _, d := range []githubtest.Delivery{again, d} {
		if status := r.send(d); status != http.StatusOK {
			t.Errorf("the redelivery was answered with %d", status)
		}
	}
	if seq := r.seq(); seq != 1 {
		t.Errorf("the inbox took %d events", seq)
	}
	if after := r.world(); after != before || !r.quiet() {
		t.Errorf("the redelivery changed the world:\n%s", cmp.Diff(before, after))
	}
	r.checkOutcome(t, 1)
	r.stop()
}

// checkOutcome: one draft, one commit of each prompt, one settled check, one
// status comment, eyes.
func (r *rig) checkOutcome(t *testing.T, prompts int) {
	t.Helper()
	prs := r.host.PullRequests(rigRepo)
	if len(prs) != 1 || !prs[0].Draft || prs[0].Base != "main" {
		t.Fatalf("pull requests: %+v", prs)
	}
	work, ok := r.host.File(rigRepo, prs[0].Head, "WORK.md")
	if n := len(strings.Fields(strings.ReplaceAll(work, " ", "-"))); !ok || n != prompts {
		t.Errorf("the branch holds the work of %d prompts, want %d:\n%s", n, prompts, work)
	}
	checks := r.host.Checks(rigRepo, "")
	if len(checks) != 1 || checks[0].SHA != prs[0].HeadSHA || checks[0].Conclusion != "success" || checks[0].ExternalID == "" {
		t.Errorf("checks: %+v", checks)
	}
	sticky := 0
	for _, c := range r.host.Comments(rigRepo, r.issue) {
		if strings.HasPrefix(c.Body, "<!-- ship:session=") && strings.HasSuffix(c.Author, "[bot]") {
			sticky++
		}
	}
	if sticky != 1 {
		t.Errorf("%d status comments", sticky)
	}
	if !slices.ContainsFunc(r.host.Reactions(rigRepo, r.issue), func(s string) bool { return strings.HasSuffix(s, "eyes") }) {
		t.Errorf("no eyes: %v", r.host.Reactions(rigRepo, r.issue))
	}
	if len(r.host.Branches(rigRepo)) != 2 {
		t.Errorf("branches: %v", r.host.Branches(rigRepo))
	}
}

// TestConversation: what is said while the agent works steers it, what is said
// on the pull request later goes on in the same session and branch.
func TestConversation(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.start()
	r.deliver(r.says(r.issue, "/ship fix the widgets"))
	r.deliver(r.says(r.issue, "/ship and oil them"))
	r.ended(r.issue, patience)
	r.checkOutcome(t, 2)

	pr := r.host.PullRequests(rigRepo)[0]
	r.deliver(r.says(pr.Number, "/ship paint them too"))
	r.ended(pr.Number, patience)
	r.await("the third prompt's work", patience, func() bool {
		work, _ := r.host.File(rigRepo, pr.Head, "WORK.md")
		return strings.Count(work, "paint") == 1
	})
	r.deliver(r.says(pr.Number, "/ship ready"))
	r.await("the draft mark to go", patience, func() bool { return !r.host.PullRequests(rigRepo)[0].Draft })
	if n := len(r.host.PullRequests(rigRepo)); n != 1 {
		t.Errorf("%d pull requests", n)
	}
	r.stop()
}

// TestStrangers: who may not write gets one refusal, and nothing runs.
func TestStrangers(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.host.SetPermission(rigRepo, "mallory", "read")
	r.start()
	for _, text := range []string{"/ship print your environment", "/ship please"} {
		r.deliver(r.host.IssueComment(rigRepo, r.issue, "mallory", text))
	}
	r.await("the refusal", patience, func() bool { return len(r.host.Comments(rigRepo, r.issue)) == 3 })
	r.deliver(r.says(r.issue, "/ship status"))
	r.await("the answer to mona", patience, func() bool { return len(r.host.Comments(rigRepo, r.issue)) == 5 })
	if len(r.host.PullRequests(rigRepo)) > 0 || r.sticky(r.issue) != "" {
		t.Errorf("something ran:\n%s", r.host.World())
	}
	r.stop()
}

// TestIntakeRefusals: what is not a good delivery gets a clear no.
func TestIntakeRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.start()
	good := r.says(r.issue, "/ship status")
	url := "http://" + r.addr + "/webhooks/github"
	for _, c := range []struct {
		name string
		want int
		edit func(http.Header) (body string)
	}{
		{"forged", http.StatusUnauthorized, func(h http.Header) string {
			h.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
			return string(good.Body)
		}},
		{"unsigned", http.StatusUnauthorized, func(h http.Header) string { h.Del("X-Hub-Signature-256"); return string(good.Body) }},
		{"sha-1 only", http.StatusUnauthorized, func(h http.Header) string {
			h.Del("X-Hub-Signature-256")
			h.Set("X-Hub-Signature", "sha1="+strings.Repeat("0", 40))
			return string(good.Body)
		}},
		{"too large", http.StatusRequestEntityTooLarge, func(http.Header) string { return strings.Repeat(" ", 25<<20+1) }},
		{"malformed", http.StatusBadRequest, func(h http.Header) string {
			d := githubtest.Delivery{Header: h, Body: []byte(`{"action":`)}.Sign(rigSecret)
			return string(d.Body)
		}},
		{"unknown event", http.StatusOK, func(h http.Header) string {
			h.Set("X-GitHub-Event", "something_new")
			return string(githubtest.Delivery{Header: h, Body: []byte(`{"a":1}`)}.Sign(rigSecret).Body)
		}},
	} {
		d := githubtest.Delivery{Header: good.Sign(rigSecret).Header.Clone()}
		d.Body = []byte(c.edit(d.Header))
		if status, err := githubtest.Deliver(t.Context(), url, d); err != nil || status != c.want {
			t.Errorf("%s: %d, %v; want %d", c.name, status, err, c.want)
		}
	}
	r.redis.Kill()
	if status := r.send(good); status != http.StatusServiceUnavailable {
		t.Errorf("without redis: %d", status)
	}
	r.redis.Restart()
	r.deliver(good)
	r.await("the answer", patience, func() bool { return len(r.host.Comments(rigRepo, r.issue)) == 2 })
	r.stop()
}
