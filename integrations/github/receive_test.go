package github

import (
	stdcmp "cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ship/bot"
	"ship/integrations/github/githubtest"
	"ship/session"
)

// signed returns a delivery of an event with a body.
func signed(event, body string) githubtest.Delivery {
	d := githubtest.Delivery{Header: http.Header{}, Body: []byte(body)}
	d.Header.Set("Content-Type", "application/json")
	d.Header.Set("X-GitHub-Event", event)
	d.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	return d.Sign(secret)
}

func newTestReceiver(t testing.TB, secrets ...string) *Receiver {
	t.Helper()
	r, err := NewReceiver(4242, DefaultWebURL, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReceiverRefusesToWorkWithoutSecret(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{nil, {}, {""}, {"good", " "}} {
		if _, err := NewReceiver(1, "", secrets); err == nil {
			t.Errorf("secrets %q were accepted", secrets)
		}
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	const docs = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	const docsSecret = "It's a Secret to Everybody"
	tests := []struct {
		name      string
		secrets   []string
		signature string
		body      string
		want      error
	}{
		{"github's own example", []string{docsSecret}, docs, "Hello, World!", nil},
		{"second secret", []string{"new", docsSecret}, docs, "Hello, World!", nil},
		{"first secret of two", []string{docsSecret, "old"}, docs, "Hello, World!", nil},
		{"other body", []string{docsSecret}, docs, "Hello, World?", bot.ErrForged},
		{"other secret", []string{"guess"}, docs, "Hello, World!", bot.ErrForged},
		{"missing", []string{docsSecret}, "", "Hello, World!", bot.ErrForged},
		{"bare hex", []string{docsSecret}, strings.TrimPrefix(docs, "sha256="), "Hello, World!", bot.ErrForged},
		{"sha1", []string{docsSecret}, "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59", "Hello, World!", bot.ErrForged},
		{"cut short", []string{docsSecret}, docs[:20], "Hello, World!", bot.ErrForged},
		{"not hex", []string{docsSecret}, "sha256=" + strings.Repeat("zz", 32), "Hello, World!", bot.ErrForged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := newVerifier(tt.secrets)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.verify(tt.signature, []byte(tt.body)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestPublishedVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(shared(t, "webhooks", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Name, Platform, Secret, Body, Value string }
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, v := range vectors {
		if v.Platform != Platform {
			continue
		}
		seen++
		known, err := newVerifier([]string{"another", v.Secret})
		if err != nil {
			t.Fatal(err)
		}
		if err := known.verify(v.Value, []byte(v.Body)); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
	if seen == 0 {
		t.Error("no vector is for this platform")
	}
}

func TestReceiveRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*githubtest.Delivery)
		want   error
	}{
		{"sha-1 only", func(d *githubtest.Delivery) {
			d.Header.Set("X-Hub-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59")
			d.Header.Del("X-Hub-Signature-256")
		}, bot.ErrForged},
		{"changed body", func(d *githubtest.Delivery) { d.Body = append(d.Body, ' ') }, bot.ErrForged},
		{"form", func(d *githubtest.Delivery) {
			d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}, bot.ErrMalformed},
		{"no content type", func(d *githubtest.Delivery) { d.Header.Del("Content-Type") }, bot.ErrMalformed},
		{"another app's", func(d *githubtest.Delivery) {
			d.Header.Set("X-GitHub-Hook-Installation-Target-ID", "1")
		}, bot.ErrMalformed},
		{"no delivery id", func(d *githubtest.Delivery) { d.Header.Del("X-GitHub-Delivery") }, bot.ErrMalformed},
		{"not JSON", func(d *githubtest.Delivery) { *d = signed("issue_comment", `{"action":"created",`) }, bot.ErrMalformed},
		{"deep JSON", func(d *githubtest.Delivery) {
			*d = signed("issue_comment", strings.Repeat("[", 4<<20))
		}, bot.ErrMalformed},
		{"no repository", func(d *githubtest.Delivery) {
			*d = signed("issue_comment", `{"action":"created","issue":{"number":1},"comment":{"id":1,"body":"/ship"}}`)
		}, bot.ErrMalformed},
		{"a path as the name", func(d *githubtest.Delivery) {
			*d = signed("issue_comment", `{"action":"created","installation":{"id":1},"issue":{"number":1},"comment":{"id":1,"body":"/ship"},"repository":{"id":1,"name":"../../app","owner":{"login":"acme"}},"sender":{"login":"x"}}`)
		}, bot.ErrMalformed},
		{"a path as the login", func(d *githubtest.Delivery) {
			*d = signed("issue_comment", `{"action":"created","installation":{"id":1},"issue":{"number":1},"comment":{"id":1,"body":"/ship"},"repository":{"id":1,"name":"widgets","owner":{"login":"acme"}},"sender":{"login":"a/../b"}}`)
		}, bot.ErrMalformed},
	}
	r := newTestReceiver(t, secret)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := signed("issue_comment", `{"action":"edited"}`)
			tt.change(&d)
			_, err := r.Receive(t.Context(), d.Header, d.Body)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestReceiveSavedExamples: GitHub's own examples of every event, ours to act
// on or not, must pass.
func TestReceiveSavedExamples(t *testing.T) {
	t.Parallel()
	root := shared(t, "webhooks", "github")
	r := newTestReceiver(t, secret)
	n := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		event := filepath.Base(filepath.Dir(path))
		d := signed(event, string(body))
		got, err := r.Receive(t.Context(), d.Header, d.Body)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if got.Outcome == "" || got.Event == "" {
			t.Errorf("%s: no outcome", path)
		}
		return nil
	})
	if err != nil || n < 100 {
		t.Errorf("%d examples, error %v", n, err)
	}
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sha := w.branch("feature")
	pull := w.CreatePull(widgets, githubtest.Pull{User: "alice", Title: "Feature", Head: "feature"})
	issue := w.on(w.issue, false)
	onPull := w.on(pull, true)
	w.perform(w.checkJob(sha, ""))
	run := w.Checks(widgets, sha)[0].ID

	type want struct {
		thread  thread
		verb    session.Verb
		text    string
		quote   string
		session session.ID // empty: the thread's own
	}
	tests := []struct {
		name     string
		delivery githubtest.Delivery
		want     []want
		outcome  string
	}{
		{name: "instruction", delivery: w.IssueComment(widgets, w.issue, "alice", "/ship fix it\nplease"),
			want: []want{{thread: issue, verb: session.Instruct, text: "fix it\nplease"}}},
		{name: "bare on an issue", delivery: w.IssueComment(widgets, w.issue, "alice", "/ship"),
			want: []want{{thread: issue, verb: session.Instruct}}},
		{name: "bare on a pull request", delivery: w.IssueComment(widgets, pull, "alice", "/ship"),
			want: []want{{thread: onPull, verb: session.Finish}}},
		{name: "several", delivery: w.IssueComment(widgets, w.issue, "alice", "/ship model small\n/ship fix it"),
			want: []want{{thread: issue, verb: session.Model, text: "small"}, {thread: issue, verb: session.Instruct, text: "fix it"}}},
		{name: "stop", delivery: w.IssueComment(widgets, w.issue, "alice", "/ship stop"),
			want: []want{{thread: issue, verb: session.Stop}}},
		{name: "label", delivery: w.Label(widgets, w.issue, "alice", "Ship"),
			want: []want{{thread: issue, verb: session.Instruct}}},
		{name: "inline", delivery: w.ReviewComment(widgets, pull, githubtest.ReviewComment{
			User: "alice", Body: "/ship rename this", Path: "fix.txt", Line: 3, Hunk: "@@ -1 +1 @@\n+x"}),
			want: []want{{thread: onPull, verb: session.Instruct, text: "rename this", quote: "fix.txt:3\n@@ -1 +1 @@\n+x"}}},
		{name: "review", delivery: w.Review(widgets, pull, "alice", "commented", "Nice.\n\n/ship"),
			want: []want{{thread: onPull, verb: session.Finish}}},
		{name: "retry button", delivery: w.CheckAction(widgets, run, "alice", "retry"),
			want: []want{{thread: onPull, verb: session.Retry, session: issue.id()}}},
		{name: "re-run", delivery: w.CheckRerequest(widgets, run, "alice"),
			want: []want{{thread: onPull, verb: session.Retry, session: issue.id()}}},
		{name: "mark ready button", delivery: w.CheckAction(widgets, run, "alice", "ready"),
			want: []want{{thread: onPull, verb: session.Ready, session: issue.id()}}},

		{name: "unknown button", delivery: w.CheckAction(widgets, run, "alice", "explode"), outcome: outcomeNoCommand},
		{name: "talk", delivery: w.IssueComment(widgets, w.issue, "alice", "we should ship this"), outcome: outcomeNoCommand},
		{name: "quoted", delivery: w.IssueComment(widgets, w.issue, "alice", "> /ship fix it\n\nno"), outcome: outcomeNoCommand},
		{name: "other label", delivery: w.Label(widgets, w.issue, "alice", "bug"), outcome: outcomeNoCommand},
		{name: "our own comment", delivery: w.IssueComment(widgets, w.issue, w.BotLogin(), "/ship fix it"), outcome: outcomeOwn},
		{name: "another bot", delivery: w.IssueComment(widgets, w.issue, "robot[bot]", "/ship fix it"), outcome: outcomeBot},
		{name: "our marker", delivery: w.IssueComment(widgets, w.issue, "alice", statusMarker("gh.1.1")+"\n/ship fix it"), outcome: outcomeOwn},
		{name: "approval without words", delivery: w.Review(widgets, pull, "alice", "approved", ""), outcome: outcomeNoCommand},
		{name: "ping", delivery: w.Ping(widgets), outcome: outcomePing},
		{name: "foreign pull request closed", delivery: w.PullClosed(widgets, pull, "alice", true), outcome: outcomeNotOurs},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.delivery.Sign(secret)
			got, err := w.Receive(t.Context(), d.Header, d.Body)
			if err != nil {
				t.Fatal(err)
			}
			if tt.outcome == "" {
				tt.outcome = outcomeAccepted
			}
			if got.Outcome != tt.outcome || len(got.Deliveries) != len(tt.want) {
				t.Fatalf("outcome %q with %d deliveries, want %q with %d", got.Outcome, len(got.Deliveries), tt.outcome, len(tt.want))
			}
			for i, want := range tt.want {
				checkRequest(t, got.Deliveries[i], d, session.Request{
					Thread: want.thread.session(), Verb: want.verb, Text: want.text, Quote: want.quote, Inline: want.quote != "",
				}, stdcmp.Or(want.session, want.thread.id()))
			}
		})
	}
}

func checkRequest(t *testing.T, got session.Delivery, d githubtest.Delivery, want session.Request, id session.ID) {
	t.Helper()
	r := got.Event.Request
	ignored := cmpopts.IgnoreFields(session.Request{}, "ID", "By", "Ref", "At")
	if diff := cmp.Diff(want, *r, ignored); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if got.Session != id || got.Event.Kind != session.Asked || got.Event.Delivery != d.GUID() {
		t.Errorf("session %q, kind %q, delivery %q", got.Session, got.Event.Kind, got.Event.Delivery)
	}
	if r.By.Login != "alice" || !strings.HasSuffix(r.By.Email, "+alice@users.noreply.127.0.0.1") {
		t.Errorf("by %+v", r.By)
	}
	if _, err := parseRef(r.Ref); err != nil || r.ID == "" || strings.Trim(r.ID, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != "" {
		t.Errorf("id %q, ref %q", r.ID, r.Ref)
	}
	if got.Keep < 4*24*time.Hour || len(got.Keys) != 2 || !strings.HasPrefix(got.Keys[0], "gh:"+d.GUID()) {
		t.Errorf("keys %q kept for %v", got.Keys, got.Keep)
	}
}

// TestRedelivery: the same act has the same keys and ids, whichever of its
// deliveries comes first, and two commands of one comment never share one.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.IssueComment(widgets, w.issue, "alice", "/ship one\n/ship two").Sign(secret)
	first, err := w.Receive(t.Context(), d.Header, d.Body)
	w.must(err)
	again, err := w.Receive(t.Context(), d.Header, d.Body)
	w.must(err)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("redelivered (-first +again):\n%s", diff)
	}
	seen := map[string]bool{}
	for _, delivery := range first.Deliveries {
		for _, key := range append(delivery.Keys, delivery.Event.Request.ID) {
			if seen[key] {
				t.Errorf("key %q twice", key)
			}
			seen[key] = true
		}
	}
	d.Header.Set("X-GitHub-Delivery", "11111111-cc78-11e3-81ab-4c9367dc0958")
	other, err := w.Receive(t.Context(), d.Header, d.Body)
	w.must(err)
	if other.Deliveries[0].Keys[1] != first.Deliveries[0].Keys[1] {
		t.Errorf("content keys %q and %q", other.Deliveries[0].Keys[1], first.Deliveries[0].Keys[1])
	}
}

func TestLongTextIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.IssueComment(widgets, w.issue, "alice", "/ship "+strings.Repeat("é", 60000)).Sign(secret)
	got, err := w.Receive(t.Context(), d.Header, d.Body)
	w.must(err)
	if n := len(got.Deliveries[0].Event.Request.Text); n > maxText || n < maxText-4 {
		t.Errorf("text has %d bytes", n)
	}
}

func TestOwnPullClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	th := w.on(w.issue, false)
	s := w.state(th)
	s.Branch = "ship/wobble-" + strings.ReplaceAll(string(s.ID), ".", "-")
	w.branch(s.Branch)
	pr := w.perform(session.Job{Effect: session.Effect{ID: "e1", Kind: session.Open}, State: s}).PR
	d := w.PullClosed(widgets, pr.Number, "alice", true).Sign(secret)
	got, err := w.Receive(t.Context(), d.Header, d.Body)
	w.must(err)
	if len(got.Deliveries) != 1 {
		t.Fatalf("outcome %q", got.Outcome)
	}
	if d := got.Deliveries[0]; d.Session != s.ID || d.Event.Kind != session.Closed || d.Event.Closed != "merged" {
		t.Errorf("got %+v", d)
	}
}

func TestUnknownEventCostsItsSignatureOnly(t *testing.T) {
	t.Parallel()
	d := signed("workflow_run", "this is not even JSON")
	got, err := newTestReceiver(t, secret).Receive(t.Context(), d.Header, d.Body)
	if err != nil || got.Outcome != outcomeIgnoredEvent || got.Event != "other" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// checkJob puts the check run of the issue's session on a commit.
func (w *world) checkJob(sha, conclusion string) session.Job {
	return session.Job{
		Effect: session.Effect{ID: "check-" + conclusion, Kind: session.Check, Check: &session.CheckState{SHA: sha, Conclusion: conclusion}},
		State:  w.state(w.on(w.issue, false)),
	}
}
