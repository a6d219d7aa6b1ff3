package lineartest_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/goleak"

	"ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/integrations/linear/lineartest/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shared returns the path of a file that lies beside the repository on some
// machines, and skips the test elsewhere.
func shared(t *testing.T, path ...string) string {
	t.Helper()
	full := filepath.Join(append([]string{"..", "..", "..", "..", "shared", "data"}, path...)...)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("needs Linear's published schema and examples: %v", err)
	}
	return full
}

// whole is Linear's own schema, loaded once; nil where it is not to be had.
var whole = sync.OnceValues(func() (lineartest.Validator, error) {
	path := filepath.Join("..", "..", "..", "..", "shared", "data", "linear-schema.graphql")
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	return schema.Load(path)
})

// client is a stand-in, what the app says to it, and one issue.
type client struct {
	*lineartest.Server
	graphql.Client
	t     *testing.T
	wire  *http.Transport
	last  http.Header // of the last answer
	token string
	issue string
}

// RoundTrip sends the token and keeps the headers of the answer.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.wire.RoundTrip(r)
	if resp != nil {
		c.last = resp.Header
	}
	return resp, err
}

// newClient makes a world with the team ENG and one issue in it. In the end
// nothing may have happened that should not.
func newClient(t *testing.T, o lineartest.Options) *client {
	t.Helper()
	c := newWildClient(t, o)
	t.Cleanup(func() {
		for _, v := range c.Violations() {
			t.Error(v)
		}
	})
	return c
}

// newWildClient is newClient for tests that do what should not be done.
func newWildClient(t *testing.T, o lineartest.Options) *client {
	t.Helper()
	v, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	if v != nil {
		o.Validator = v
	}
	s, err := lineartest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{Server: s, t: t, wire: &http.Transport{DisableKeepAlives: true}, token: s.Token()}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Client = linear.New(&http.Client{Transport: c}, s.APIURL())
	s.CreateTeam("ENG", "Engineering")
	c.issue = s.CreateIssue(lineartest.Issue{
		Team: "ENG", Title: "Login test is flaky", Description: "Fails one run in five.", Creator: "ada", Assignee: "bob",
		Project: "Quality", Labels: []lineartest.Label{{Name: "bug"}, {Group: "repo", Name: "acme/widgets"}},
	})
	return c
}

// ids are UUIDs of version 4, each time another.
func (c *client) id(n int) string {
	return "6f0f1a52-0000-4000-8000-" + hex12(n)
}

func hex12(n int) string {
	const digits = "0123456789abcdef"
	out := []byte("000000000000")
	for at := len(out) - 1; n > 0; at-- {
		out[at] = digits[n%16]
		n /= 16
	}
	return string(out)
}

// says has the app say something and fails the test if it may not.
func (c *client) says(session string, n int, content linear.Content, ephemeral bool) {
	c.t.Helper()
	got, err := linear.CreateActivity(c.t.Context(), c, c.id(n), session, content, ephemeral)
	if err != nil || !got.AgentActivityCreate.Success {
		c.t.Fatalf("%+v: %v", content, err)
	}
}

// code is that of the first error of Linear's in err, empty if there is none.
func code(err error) string {
	var list gqlerror.List
	var status *graphql.HTTPError
	if errors.As(err, &status) {
		list = status.Response.Errors
	} else if !errors.As(err, &list) {
		return ""
	}
	if len(list) == 0 {
		return ""
	}
	text, _ := list[0].Extensions["code"].(string)
	return text
}

func (c *client) mustFail(err error, want string) {
	c.t.Helper()
	if got := code(err); got != want {
		c.t.Errorf("got %v (%q), want %s", err, got, want)
	}
}

const hour = time.Hour
