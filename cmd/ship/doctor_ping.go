package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ship/config"
	"ship/integrations/github/githubtest"
)

const (
	// hookPath is where GitHub's webhooks are taken.
	hookPath = "/webhooks/github"
	// localTime and publicTime are how long ship may take to answer from here,
	// and by the way that GitHub takes; GitHub itself gives up after ten seconds.
	localTime, publicTime = 3 * time.Second, 10 * time.Second
)

// checkServe looks whether a ship runs where the settings say.
func checkServe(ctx context.Context, p *patient) finding {
	home := "http://" + p.settings.Listen
	if status, err := fetch(ctx, home+"/healthz"); err != nil || status != http.StatusOK {
		return doubt("start it: ship serve", "no ship answers on %s", p.settings.Listen)
	}
	p.serves = true
	status, err := fetch(ctx, home+"/readyz")
	switch {
	case err != nil:
		return bad("see its log", "ship runs on %s and does not say whether it is ready: %v", p.settings.Listen, err)
	case status != http.StatusOK:
		return bad("see redis, and ship's log", "ship runs on %s and is not ready (%d)", p.settings.Listen, status)
	}
	return good("ship runs on %s and is ready", p.settings.Listen)
}

func fetch(ctx context.Context, address string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	resp, err := directClient(localTime).Do(req)
	if err != nil {
		return 0, bare(err)
	}
	return resp.StatusCode, resp.Body.Close()
}

// door is where a platform's webhooks are taken, and how one is made that
// nothing follows from.
type door struct {
	// platform as people write it.
	platform string
	path     string
	// key of the secrets in the settings.
	key     string
	secrets config.Secrets
	sign    func(secret string) (signed, error)
	// answer is part of what ship says to it.
	answer string
	// misread and remedy explain a 400.
	misread, remedy string
}

// checkPing sends what GitHub sends when a webhook is set up.
func checkPing(ctx context.Context, p *patient) finding {
	return p.knock(ctx, door{
		platform: "GitHub", key: "github.webhook_secret", path: hookPath, secrets: p.settings.GitHub.WebhookSecret, answer: "ping",
		sign:    func(secret string) (signed, error) { return pingOf(p.settings.GitHub.AppID, secret), nil },
		misread: "what answers belongs to another app", remedy: "restart ship after a change of github.app_id; else another ship answers there",
	})
}

// knock signs with each of the secrets: one that ship does not know would be
// refused.
func (p *patient) knock(ctx context.Context, d door) finding {
	secrets := d.secrets.Reveal()
	if len(secrets) == 0 {
		return bad("ship setup "+strings.ToLower(d.platform), "there is no webhook secret to sign with")
	}
	target := p.settings.PublicURL
	if target == "" {
		target = "http://" + p.settings.Listen
	}
	if p.settings.PublicURL == "" && !p.serves {
		return doubt("run ship doctor again when ship serve runs", "nothing was sent: ship does not run, and public_url is not set")
	}
	target = strings.TrimRight(target, "/") + d.path
	for _, secret := range secrets {
		made, err := d.sign(secret)
		if err != nil {
			return bad("", "%v", err)
		}
		status, said, err := ping(ctx, target, made)
		if err != nil || status != http.StatusOK {
			return p.unheard(d, target, status, err)
		}
		if !strings.Contains(said, d.answer) {
			return bad("let the proxy lead that path to ship", "%s answers 200, but it is not ship that does", target)
		}
	}
	return good("%s accepts a signed ping", target)
}

// unheard says why a ping was not accepted. While no ship runs here, that
// nobody took it says little.
func (p *patient) unheard(d door, target string, status int, err error) finding {
	blame := bad
	if !p.serves {
		blame = func(remedy, format string, args ...any) finding {
			return doubt("run ship doctor again when ship serve runs; if it runs elsewhere: "+remedy, format, args...)
		}
	}
	switch {
	case err != nil:
		return blame("check DNS, the certificate, and the proxy before ship", "%s cannot be reached: %v", target, err)
	case status == http.StatusUnauthorized:
		return bad("restart ship after a change of "+d.key+"; else another ship answers there", "%s refuses the signature (401): what answers has other secrets", target)
	case status == http.StatusBadRequest:
		return bad(d.remedy, "%s refuses the ping (400): %s", target, d.misread)
	case status == http.StatusNotFound:
		return blame("let the proxy lead that path to ship", "%s is not there (404)", target)
	case status >= 300 && status < 400:
		return blame("set public_url to where it leads: "+d.platform+" follows no redirect", "%s redirects (%d)", target, status)
	case status == http.StatusServiceUnavailable:
		return blame("see redis, and ship's log", "%s cannot take anything now (503)", target)
	default:
		return blame("check the proxy before ship", "%s answered %d", target, status)
	}
}

// pingOf is what GitHub sends when a webhook is set up.
func pingOf(appID int64, secret string) signed {
	d := githubtest.Delivery{Body: []byte(`{"zen":"Is anybody there?","hook_id":1}`), Header: http.Header{
		"Content-Type": {"application/json"}, "X-Github-Event": {"ping"}, "X-Github-Delivery": {newGUID()},
		"X-Github-Hook-Installation-Target-Id": {strconv.FormatInt(appID, 10)},
	}}.Sign(secret)
	return signed{d.GUID(), d.Header, d.Body}
}

// ping delivers a ping and returns the status and the beginning of the answer.
func ping(ctx context.Context, target string, d signed) (status int, said string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(d.body))
	if err != nil {
		return 0, "", err
	}
	req.Header = d.header
	resp, err := directClient(publicTime).Do(req)
	if err != nil {
		return 0, "", bare(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 200))
	return resp.StatusCode, string(b), err
}
