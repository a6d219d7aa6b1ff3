package main

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"ship/integrations/linear"
	"ship/integrations/linear/lineartest"
)

// TestInstallLinear: an admin's browser goes the whole road with a ship that
// runs, from the operator's link to Linear and back.
func TestInstallLinear(t *testing.T) {
	t.Parallel()
	stand, err := lineartest.New(lineartest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stand.Close()
	r := newRig(t, rigOptions{more: fmt.Sprintf(`linear:
  grant: authorization_code
  client_id: %s
  client_secret: %s
  webhook_secret: %s
  token_key: %s
  api_url: %s
  token_url: %s
`, stand.ClientID(), stand.ClientSecret(), linearHookSecret, strings.Repeat("k", 40), stand.APIURL(), stand.TokenURL())})
	public := "SHIP_PUBLIC_URL=http://" + r.addr
	r.start(public)
	said := &syncBuffer{}
	if err := setUpLinear(t.Context(), linearSetup{config: r.config, grant: linear.GrantClient, install: true, environ: []string{public}, out: said}); err != nil {
		t.Fatal(err)
	}
	_, link, ok := strings.Cut(said.String(), "  http://")
	if !ok {
		t.Fatalf("no link was printed:\n%s", said)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	if status, page := browse(t, browser, "http://"+r.addr+linear.InstallPath); status != http.StatusForbidden {
		t.Errorf("without a ticket: %d\n%s", status, page)
	}
	status, page := browse(t, browser, "http://"+strings.TrimSpace(link))
	if status != http.StatusOK || !strings.Contains(page, "ship is in ") {
		t.Errorf("%d\n%s", status, page)
	}
	r.await("the log to tell of the workspace", patience, func() bool { return strings.Contains(r.log.String(), stand.OrganizationID()) })
	if log := r.log.String(); strings.Contains(log, "lin_oauth_") {
		t.Errorf("ship's log:\n%s", log)
	}
}
