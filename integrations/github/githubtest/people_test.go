package githubtest_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	"ship/integrations/github/githubtest"
)

// TestPeople: an address belongs to whom verified it, is found when it is
// shown, and commits are linked by it.
func TestPeople(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubtest.Options{})
	c.SetEmail("alice", "alice@example.com", false)
	c.SetEmail("carol", "carol@example.com", true)
	for n, address := range []string{"alice@example.com", "nobody@example.com"} {
		if _, err := c.CommitAs(widgets, "main", address, map[string]string{"n.txt": fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
	}
	token := c.token(`{}`)
	read := func(path string, into any) {
		t.Helper()
		got := c.do("GET", path, token, "")
		if err := json.Unmarshal(got.body, into); err != nil || got.status != 200 {
			t.Fatalf("%s: %d: %s", path, got.status, got.body)
		}
	}
	linked := func(address string) string {
		var list []struct {
			Author *struct{ Login string }
			Commit struct{ Author struct{ Email string } }
		}
		read("/repos/"+widgets+"/commits?author="+url.QueryEscape(address), &list)
		if len(list) != 1 || list[0].Commit.Author.Email != address {
			t.Fatalf("commits of %s: %+v", address, list)
		}
		if list[0].Author == nil {
			return ""
		}
		return list[0].Author.Login
	}
	if got := linked("alice@example.com"); got != "alice" {
		t.Errorf("alice's commit is linked to %q", got)
	}
	if got := linked("nobody@example.com"); got != "" {
		t.Errorf("nobody's commit is linked to %q", got)
	}
	for address, want := range map[string]int{"carol@example.com": 1, "alice@example.com": 0} {
		var found struct {
			Total int `json:"total_count"`
			Items []struct{ Login string }
		}
		if read("/search/users?q="+url.QueryEscape(address+" in:email"), &found); found.Total != want || len(found.Items) != want {
			t.Errorf("%s: %+v", address, found)
		}
	}
	for login, want := range map[string]string{"carol": "carol@example.com", "alice": ""} {
		var u struct {
			ID    int64
			Email string
		}
		if read("/users/"+login, &u); u.Email != want || u.ID != c.UserID(login) {
			t.Errorf("%s: %+v", login, u)
		}
	}
	if got := c.do("GET", "/users/stranger", token, ""); got.status != 404 {
		t.Errorf("a stranger: %d", got.status)
	}
}
