package linear

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/bot"
	"ship/session"
)

var validSession = regexp.MustCompile(`^ln\.[A-Za-z0-9-]{1,64}$`)

func FuzzReceive(f *testing.F) {
	for _, e := range []object{
		delegated(), mentioned("@ship [repo=a/b] fix it"), promptedWith(content("/ship budget 10")),
		promptedWith(object{"signal": "stop"}), event(eventApp, "revoked"),
		event(eventNotification, "issueUnassignedFromYou").with(object{"notification": object{"id": "n", "issueId": "i"}}),
		notified("issueUnassignedFromYou"), notified("issueStatusChanged"), event(eventPermission, "teamAccessChanged"),
		event(eventAuthorization, "revoked"), delegated().with(object{"agentSession": object{
			"id": sessionID, "creatorId": ada, "creator": object{"id": ada, "name": strings.Repeat("n", 400), "email": strings.Repeat("e", 400) + "@x.example"},
		}}), delegated().with(object{"createdAt": "soon", "appUserId": nil}),
	} {
		f.Add([]byte(text(f, e)))
	}
	examples, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "webhooks", "linear", "*.json"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range examples {
		body, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := receiver(t)
		if err := r.rolls.add(t.Context(), thread{org, sessionID, issueID}, now.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		h.Set(headerDelivery, deliveryID)
		h.Set(headerSignature, sign(secret, body))
		got, err := r.Receive(t.Context(), h, body)
		if err != nil {
			if !errors.Is(err, bot.ErrForged) && !errors.Is(err, bot.ErrMalformed) {
				t.Error(err)
			}
			return
		}
		if got.Outcome == "" || got.Delivery != deliveryID {
			t.Errorf("got %+v", got)
		}
		for _, d := range got.Deliveries {
			if !validSession.MatchString(string(d.Session)) || len(d.Keys) != 2 {
				t.Errorf("session %q with keys %q", d.Session, d.Keys)
			}
			q := d.Event.Request
			if th, err := parseThread(q.Thread.Key); err != nil || th.id() != d.Session {
				t.Errorf("thread %q: %v", q.Thread.Key, err)
			}
			if r, err := parseRef(q.Ref); err != nil || r.String() != q.Ref {
				t.Errorf("ref %q: %v", q.Ref, err)
			}
			if q.Early == (q.Verb == session.Withdraw) || q.ID == "" {
				t.Errorf("request %+v", q)
			}
			if len(q.By.Name) > maxCalled || len(q.By.Email) > maxAddress || len(q.By.Login) > 64 {
				t.Errorf("asked by %+v", q.By)
			}
			if len(q.Text) > maxText || len(q.Quote) > maxQuote || q.Verb == "" || q.By.Login == "" {
				t.Errorf("request %+v", q)
			}
		}
	})
}

func FuzzKeys(f *testing.F) {
	for _, s := range []string{org + "/" + sessionID + "/" + issueID, org + "//" + issueID, "a//", "a/b/", "/b/c", "a/b", "//", activityID + "/" + commentID, activityID + "/", "", refStatus} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if th, err := parseThread(s); err == nil && (th.key() != s || th.valid() == th.silent()) {
			t.Errorf("thread %q became %q, silent %t", s, th.key(), th.silent())
		}
		if r, err := parseRef(s); err == nil && r.String() != s {
			t.Errorf("ref %q became %q", s, r)
		}
	})
}

func FuzzGranted(f *testing.F) {
	for _, s := range []string{`{"access_token":"a","refresh_token":"r","expires_in":86399}`, `{"access_token":"a","expires_in":-1}`, `{"access_token":"a","expires_in":1e-12}`, `{"error":"invalid_grant"}`, `[]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if g, err := granted(body); err == nil && (g.Access.Empty() || g.Lives <= 0) {
			t.Errorf("granted %v for %s", g, g.Lives)
		}
		resp := &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Retry-After": {string(body)}}}
		if r := refused(resp, body); r.after < 0 || r.after > 24*time.Hour || r.code != "" && !oauthCode.MatchString(r.code) {
			t.Errorf("refused %+v", r)
		}
	})
}

func FuzzStatusOf(f *testing.F) {
	f.Add(400, []byte(`{"errors":[{"extensions":{"code":"RATELIMITED","statusCode":429}}]}`), "0", "1794787200000")
	f.Add(200, []byte(`{"errors":[null]}`), "-1", "x")
	f.Fuzz(func(t *testing.T, status int, body []byte, left, reset string) {
		got := StatusOf(status, body)
		if got != status && (got != http.StatusTooManyRequests && got != http.StatusUnauthorized || status != 200 && status != 400) {
			t.Errorf("%d became %d", status, got)
		}
		h := http.Header{"X-Ratelimit-Requests-Remaining": {left}, "X-Ratelimit-Requests-Reset": {reset}}
		if block := blockFor(h, now); block < time.Second || block > maxBlock {
			t.Errorf("blocked for %s", block)
		}
	})
}

func FuzzRoll(f *testing.F) {
	for _, s := range []string{`[{"s":"a","b":1794787200000}]`, `[{"s":"../x"},{}]`, "null", `["a"]`, `{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, e := range parseRoll(value) {
			if !(thread{org, e.Session, issueID}).valid() {
				t.Errorf("session %q", e.Session)
			}
		}
		all := with(with(parseList(value), org), org)
		if left := without(slices.Clone(all), org); len(left) != len(all)-1 || !slices.Contains(all, org) {
			t.Errorf("list %q, and %q without", all, left)
		}
	})
}
