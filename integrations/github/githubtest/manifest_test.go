package githubtest_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ship/integrations/github/githubtest"
)

// TestManifestsAreLookedAt: what GitHub would not take is not taken.
func TestManifestsAreLookedAt(t *testing.T) {
	t.Parallel()
	c := newClient(t, githubtest.Options{})
	const good = `{"name":"My App","url":"https://a.example","hook_attributes":{"url":"https://a.example/hook"},"redirect_url":"http://127.0.0.1:1/back?x=y","default_permissions":{"issues":"write"},"default_events":["issues"]}`
	browser := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	post := func(manifest string) (*http.Response, string) {
		resp, err := browser.PostForm(c.URL+"/organizations/acme/settings/apps/new?state=s", url.Values{"manifest": {manifest}})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		said, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(said)
	}
	for old, bad := range map[string]string{
		`"My App"`: `""`, `https://a.example/hook`: `nowhere`, `"issues"]`: `"check_run"]`, `{"name"`: `"name"`, `http://127.0.0.1:1/back?x=y`: `/back`,
	} {
		if resp, said := post(strings.Replace(good, old, bad, 1)); resp.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", bad, resp.StatusCode, said)
		}
	}
	resp, _ := post(good)
	back, err := resp.Location()
	if err != nil {
		t.Fatal(err)
	}
	if q := back.Query(); q.Get("state") != "s" || q.Get("x") != "y" || q.Get("code") == "" {
		t.Errorf("back to %s", back)
	}
	path := "/app-manifests/" + back.Query().Get("code") + "/conversions"
	if got := c.do("POST", path, "", ""); got.status != http.StatusCreated || !strings.Contains(string(got.body), `"slug":"my-app"`) {
		t.Errorf("%d: %s", got.status, got.body)
	}
	if got := c.do("POST", path, "", ""); got.status != http.StatusNotFound {
		t.Errorf("the code again: %d", got.status)
	}
}
