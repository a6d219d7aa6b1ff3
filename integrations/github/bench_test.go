package github

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bigComment is a realistic delivery of 28 KB, in the order in which GitHub
// writes: most of it is what nobody reads.
func bigComment(tb testing.TB) []byte {
	tb.Helper()
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			tb.Fatal(err)
		}
		return string(b)
	}
	urls := func(prefix, words string) string {
		var b strings.Builder
		for _, word := range strings.Fields(words) {
			b.WriteString(`,"` + word + `_url":"` + prefix + word + `{/other}"`)
		}
		return b.String()
	}
	person := `{"login":"alice","id":7,"node_id":"MDQ6"` +
		urls("https://api.github.com/users/alice/", "avatar followers following gists starred subscriptions organizations repos events received_events") +
		`,"type":"User","site_admin":false}`
	issue := `{"id":1,"number":7,"title":"A title","user":` + person + `,"labels":[],"state":"open"` +
		`,"body":` + quoted(strings.Repeat("The quick brown fox jumps over the lazy dog, and so on, until a line is full.\n", 238)) + `}`
	comment := `{"id":42,"node_id":"IC_1","user":` + person + `,"created_at":"2026-11-16T00:00:00Z","author_association":"MEMBER"` +
		`,"body":` + quoted("/ship fix the flake\n\n"+strings.Repeat("More context for whoever reads it.\n", 25)) + `}`
	repository := `{"id":1296269,"node_id":"R_1","name":"widgets","full_name":"acme/widgets","private":false,"owner":` + person +
		urls("https://api.github.com/repos/acme/widgets/", strings.Repeat("archive assignees blobs branches collaborators comments commits compare contents contributors ", 5)) +
		`,"created_at":"2011-01-26T19:01:12Z","default_branch":"main"}`
	return []byte(`{"action":"created","issue":` + issue + `,"comment":` + comment + `,"repository":` + repository +
		`,"organization":` + person + `,"sender":` + person + `,"installation":{"id":99,"node_id":"MDIz"}}`)
}

// commentEvent is what encoding/json would decode the same into.
type commentEvent struct {
	Action string
	Issue  struct {
		Number      int
		PullRequest *struct{} `json:"pull_request"`
	}
	Comment struct {
		ID        int64
		Body      string
		CreatedAt string `json:"created_at"`
	}
	Repository struct {
		ID    int64
		Name  string
		Owner struct{ Login string }
	}
	Sender struct {
		ID          int64
		Login, Type string
	}
	Installation struct{ ID int64 }
}

func BenchmarkVerify(b *testing.B) {
	body := bigComment(b)
	d := signed("issue_comment", string(body))
	v, err := newVerifier([]string{secret})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if err := v.verify(d.Header.Get(headerSignature), body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	body := bigComment(b)
	r := newTestReceiver(b, secret)
	b.Run("ship", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			p, ok := cut(body)
			if !ok {
				b.Fatal("not valid")
			}
			if _, got, err := issueComment(r, "guid", p); err != nil || len(got) != 1 {
				b.Fatal(got, err)
			}
		}
	})
	b.Run("parts only", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			p, ok := cut(body)
			if !ok {
				b.Fatal("not valid")
			}
			if _, err := p.thread(p.issue.get("number"), false); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			var e commentEvent
			if err := json.Unmarshal(body, &e); err != nil || e.Comment.ID != 42 {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkReceive(b *testing.B) {
	d := signed("issue_comment", string(bigComment(b)))
	r := newTestReceiver(b, secret)
	b.SetBytes(int64(len(d.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if got, err := r.Receive(b.Context(), d.Header, d.Body); err != nil || len(got.Deliveries) != 1 {
			b.Fatal(got, err)
		}
	}
}

// TestDecodeAgrees: the quick way reads what encoding/json reads.
func TestDecodeAgrees(t *testing.T) {
	t.Parallel()
	body := bigComment(t)
	var want commentEvent
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	p, ok := cut(body)
	if !ok {
		t.Fatal("not valid")
	}
	var got commentEvent
	got.Action = p.action
	got.Issue.Number = int(p.issue.get("number").Int())
	got.Comment.ID, got.Comment.Body = p.comment.get("id").Int(), text(p.comment.get("body"))
	got.Comment.CreatedAt = text(p.comment.get("created_at"))
	r, err := p.repo()
	if err != nil {
		t.Fatal(err)
	}
	got.Repository.ID, got.Repository.Name, got.Repository.Owner.Login, got.Installation.ID = r.id, r.name, r.owner, r.installation
	got.Sender.ID, got.Sender.Login, got.Sender.Type = p.sender.get("id").Int(), text(p.sender.get("login")), text(p.sender.get("type"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-encoding/json +ours):\n%s", diff)
	}
	if len(body) < 27_000 || len(body) > 30_000 {
		t.Errorf("the example has %d bytes", len(body))
	}
}
