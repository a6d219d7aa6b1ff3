package githubtest_test

import (
	"bytes"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
	"go.uber.org/goleak"

	"ship/integrations/github/githubtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const widgets = "acme/widgets"

type client struct {
	*githubtest.Server
	t   *testing.T
	key *rsa.PrivateKey
}

func newClient(t *testing.T, o githubtest.Options) *client {
	t.Helper()
	s, err := githubtest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.CreateRepo(widgets, map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n"}); err != nil {
		t.Fatal(err)
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(s.PrivateKey()))
	if err != nil {
		t.Fatal(err)
	}
	return &client{Server: s, t: t, key: key}
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (c *client) do(method, path, authorization, body string) answer {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.APIURL()+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", authorization)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, b}
}

func (c *client) jwt(issuer string, issued, expires time.Duration) string {
	c.t.Helper()
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer: issuer, IssuedAt: jwt.NewNumericDate(now.Add(issued)), ExpiresAt: jwt.NewNumericDate(now.Add(expires)),
	})
	signed, err := token.SignedString(c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	return "Bearer " + signed
}

func (c *client) token(request string) string {
	c.t.Helper()
	path := fmt.Sprintf("/app/installations/%d/access_tokens", c.InstallationID("acme"))
	got := c.do("POST", path, c.jwt("4242", -time.Minute, time.Minute), request)
	if got.status != http.StatusCreated {
		c.t.Fatalf("%d: %s", got.status, got.body)
	}
	var token struct{ Token string }
	if err := json.Unmarshal(got.body, &token); err != nil {
		c.t.Fatal(err)
	}
	return "token " + token.Token
}

func TestAppTokensAreVerified(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubtest.Options{})
	good := c.jwt("4242", -time.Minute, time.Minute)
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	tests := map[string]struct {
		authorization string
		status        int
	}{
		"good":              {good, 200},
		"none":              {"", 401},
		"expired":           {c.jwt("4242", -10*time.Minute, -time.Minute), 401},
		"too long":          {c.jwt("4242", -time.Minute, 11*time.Minute), 401},
		"from the future":   {c.jwt("4242", time.Minute, 2*time.Minute), 401},
		"of another app":    {c.jwt("1", -time.Minute, time.Minute), 401},
		"other signature":   {strings.Join(parts[:2], ".") + "." + strings.Repeat("A", 342), 401},
		"no signature":      {strings.Join(parts[:2], ".") + ".", 401},
		"another algorithm": {"Bearer " + none + "." + parts[1] + ".", 401},
	}
	for name, tt := range tests {
		if got := c.do("GET", "/app", tt.authorization, ""); got.status != tt.status {
			t.Errorf("%s: %d, want %d", name, got.status, tt.status)
		}
	}
}

func TestInstallationTokensReachWhatTheyMay(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubtest.Options{})
	if err := c.CreateRepo("acme/secrets", map[string]string{"x": "y"}); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateRepo("other/things", map[string]string{"x": "y"}); err != nil {
		t.Fatal(err)
	}
	issue := c.CreateIssue(widgets, "bob", "Title", "Body")
	comments := fmt.Sprintf("/repos/%s/issues/%d/comments", widgets, issue)
	wide := c.token(`{}`)
	narrow := c.token(fmt.Sprintf(`{"repository_ids":[%d],"permissions":{"issues":"read"}}`, c.RepositoryID(widgets)))
	tests := []struct {
		method, path, token, body string
		status                    int
	}{
		{"POST", comments, wide, `{"body":"x"}`, 201},
		{"GET", comments, narrow, "", 200},
		{"POST", comments, narrow, `{"body":"x"}`, 403},
		{"GET", "/repos/acme/secrets", wide, "", 200},
		{"GET", "/repos/acme/secrets", narrow, "", 404},
		{"GET", "/repos/other/things", wide, "", 404},
		{"GET", comments, "token guess", "", 401},
		{"GET", comments, c.jwt("4242", 0, time.Minute), "", 401},
		{"POST", comments, wide, `{"body":""}`, 422},
		{"POST", comments, wide, `{"body":"` + strings.Repeat("x", 65537) + `"}`, 422},
	}
	for _, tt := range tests {
		if got := c.do(tt.method, tt.path, tt.token, tt.body); got.status != tt.status {
			t.Errorf("%s %s: %d, want %d: %s", tt.method, tt.path, got.status, tt.status, got.body)
		}
	}
	c.ExpireTokens()
	if got := c.do("GET", comments, wide, ""); got.status != 401 {
		t.Errorf("an expired token: %d", got.status)
	}
}

func TestTokensCannotHaveMoreThanTheInstallation(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubtest.Options{TokenTTL: time.Second})
	path := fmt.Sprintf("/app/installations/%d/access_tokens", c.InstallationID("acme"))
	app := c.jwt("4242", -time.Minute, time.Minute)
	for _, request := range []string{`{"permissions":{"administration":"write"}}`, `{"permissions":{"actions":"write"}}`, `{"repository_ids":[1]}`} {
		if got := c.do("POST", path, app, request); got.status != 422 {
			t.Errorf("%s: %d", request, got.status)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubtest.Options{})
	issue := c.CreateIssue(widgets, "bob", "Title", "Body")
	for i := range 25 {
		c.Comment(widgets, issue, "bob", fmt.Sprint(i))
	}
	token := c.token(`{}`)
	got := c.do("GET", fmt.Sprintf("/repos/%s/issues/%d/comments?per_page=10&page=2", widgets, issue), token, "")
	var list []struct{ Body string }
	if err := json.Unmarshal(got.body, &list); err != nil || len(list) != 10 || list[0].Body != "10" {
		t.Errorf("page two holds %d: %v", len(list), err)
	}
	for _, rel := range []string{`page=1&per_page=10>; rel="prev"`, `page=3&per_page=10>; rel="next"`, `rel="last"`, `rel="first"`} {
		if !strings.Contains(got.header.Get("Link"), rel) {
			t.Errorf("%s is not in %s", rel, got.header.Get("Link"))
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubtest.Options{})
	issue := c.CreateIssue(widgets, "bob", "Title", "Body")
	path, token := fmt.Sprintf("/repos/%s/issues/%d/comments", widgets, issue), c.token(`{}`)
	const route = "POST /repos/{owner}/{repo}/issues/{number}/comments"
	c.Inject(githubtest.Fault{On: route, Status: 500, Skip: 1, Times: 2})
	var got []int
	for range 4 {
		got = append(got, c.do("POST", path, token, `{"body":"x"}`).status)
	}
	if fmt.Sprint(got) != "[201 500 500 201]" || c.Calls(route) != 4 {
		t.Errorf("answers %v after %d calls", got, c.Calls(route))
	}
	c.Inject(githubtest.Fault{On: route, Lost: true})
	req, err := http.NewRequestWithContext(t.Context(), "POST", c.APIURL()+path, strings.NewReader(`{"body":"lost"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", token)
	if resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("the answer came: %d", resp.StatusCode)
	}
	if n := len(c.Comments(widgets, issue)); n != 3 {
		t.Errorf("%d comments", n)
	}
}

// TestWorldsAreComparable: what was done the same way looks the same, and what
// differs shows.
func TestWorldsAreComparable(t *testing.T) {
	t.Parallel()
	live := func(extra bool) string {
		c := newClient(t, githubtest.Options{})
		if extra { // other ids from here on
			c.CreateIssue(widgets, "bob", "x", "y")
		} else {
			c.SetPermission(widgets, "zoe", "read")
			c.CreateIssue(widgets, "bob", "x", "y")
		}
		sha, err := c.Commit(widgets, "feature", map[string]string{"c.txt": "c\n"}, "Add c")
		if err != nil {
			t.Fatal(err)
		}
		pull := c.CreatePull(widgets, githubtest.Pull{User: "bob", Title: "Feature", Head: "feature"})
		c.Comment(widgets, pull, "bob", "see "+sha)
		return c.World()
	}
	one, two := live(true), live(false)
	if one != two {
		t.Errorf("worlds differ:\n%s\n%s", one, two)
	}
	for _, want := range []string{"branch feature", "see COMMIT", "pull request acme/widgets:feature into main"} {
		if !strings.Contains(one, want) {
			t.Errorf("%q is not in\n%s", want, one)
		}
	}
	c := newClient(t, githubtest.Options{})
	if c.World() == one {
		t.Error("an empty world looks the same")
	}
}

func TestFilesAndDiff(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubtest.Options{})
	if _, err := c.Commit(widgets, "feature", map[string]string{"a.txt": "changed\n"}, "Change a"); err != nil {
		t.Fatal(err)
	}
	if text, ok := c.File(widgets, "feature", "dir/b.txt"); !ok || text != "b" {
		t.Errorf("got %q, %t", text, ok)
	}
	diff, err := c.Diff(widgets, "main", "feature")
	if err != nil || !strings.Contains(diff, "+changed") {
		t.Errorf("got %q, %v", diff, err)
	}
	if err := c.DeleteBranch(widgets, "feature"); err != nil || len(c.Branches(widgets)) != 1 {
		t.Errorf("branches %v, %v", c.Branches(widgets), err)
	}
}

func TestGitAsksForAToken(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubtest.Options{})
	read := strings.TrimPrefix(c.token(`{"permissions":{"contents":"read"}}`), "token ")
	tests := []struct {
		service, user, password string
		status                  int
	}{
		{"git-upload-pack", "", "", 401},
		{"git-upload-pack", "x-access-token", "guess", 401},
		{"git-upload-pack", "alice", read, 401},
		{"git-upload-pack", "x-access-token", read, 200},
		{"git-receive-pack", "x-access-token", read, 403},
	}
	for _, tt := range tests {
		req, err := http.NewRequestWithContext(t.Context(), "GET", c.URL+"/"+widgets+".git/info/refs?service="+tt.service, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.user != "" {
			req.SetBasicAuth(tt.user, tt.password)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.status {
			t.Errorf("%s as %q: %d, want %d", tt.service, tt.user, resp.StatusCode, tt.status)
		}
	}
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubtest.Options{})
	issue := c.CreateIssue(widgets, "bob", "Title", "Body")
	d := c.IssueComment(widgets, issue, "alice", "/ship").Sign("s")
	var got []byte
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		if r.Header.Get("X-Hub-Signature-256") == "" || r.Header.Get("X-GitHub-Event") != "issue_comment" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer hook.Close()
	status, err := githubtest.Deliver(t.Context(), hook.URL, d)
	http.DefaultClient.CloseIdleConnections()
	if err != nil || status != 200 || !bytes.Equal(got, d.Body) {
		t.Errorf("got %d, %v", status, err)
	}
}
