package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ship/bot"
)

// shared finds what is kept beside the repository, and skips without it.
func shared(t testing.TB, path ...string) string {
	t.Helper()
	name := filepath.Join(append([]string{"..", "..", "..", "shared", "data"}, path...)...)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not there", name)
	}
	return name
}

// example is one of the collection of what Slack sends.
func example(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(shared(t, "webhooks", "slack", name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// signed are the headers of a body that is sent at a moment.
func signed(secret string, at time.Time, body []byte) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	h := http.Header{}
	h.Set(headerTimestamp, stamp)
	h.Set(headerSignature, "v0="+hex.EncodeToString(signature([]byte(secret), stamp, body)))
	return h
}

func TestReceiverRefusesToWorkWithoutSecret(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{nil, {}, {""}, {"good", " "}} {
		if _, err := NewReceiver(ReceiverConfig{Secrets: secrets}); err == nil {
			t.Errorf("secrets %q were accepted", secrets)
		}
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	const known, body = "a secret", `{"type":"event_callback"}`
	now := time.Unix(1795000000, 0)
	good := signed(known, now, []byte(body)).Get(headerSignature)
	tests := []struct {
		name      string
		secrets   []string
		signature string
		stamp     string
		body      string
		want      error
	}{
		{"good", []string{known}, good, "1795000000", body, nil},
		{"capitals", []string{known}, "v0=" + strings.ToUpper(good[3:]), "1795000000", body, nil},
		{"first of two", []string{known, "old"}, good, "1795000000", body, nil},
		{"second of two", []string{"new", known}, good, "1795000000", body, nil},
		{"other body", []string{known}, good, "1795000000", body + " ", bot.ErrForged},
		{"other time", []string{known}, good, "1795000001", body, bot.ErrForged},
		{"time written otherwise", []string{known}, good, "+1795000000", body, bot.ErrForged},
		{"no time", []string{known}, good, "", body, bot.ErrForged},
		{"odd time", []string{known}, good, "today", body, bot.ErrForged},
		{"other secret", []string{"guess"}, good, "1795000000", body, bot.ErrForged},
		{"missing", []string{known}, "", "1795000000", body, bot.ErrForged},
		{"no version", []string{known}, good[3:], "1795000000", body, bot.ErrForged},
		{"another version", []string{known}, "v1=" + good[3:], "1795000000", body, bot.ErrForged},
		{"cut short", []string{known}, good[:65], "1795000000", body, bot.ErrForged},
		{"not hex", []string{known}, "v0=" + strings.Repeat("zz", 32), "1795000000", body, bot.ErrForged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := newVerifier(tt.secrets)
			if err != nil {
				t.Fatal(err)
			}
			h := http.Header{headerSignature: {tt.signature}, headerTimestamp: {tt.stamp}}
			if err := v.verify(h, []byte(tt.body), now); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	v, err := newVerifier([]string{"s"})
	if err != nil {
		t.Fatal(err)
	}
	sent := time.Unix(1795000000, 0)
	for _, tt := range []struct {
		late time.Duration
		want error
	}{
		{0, nil}, {5 * time.Minute, nil}, {-5 * time.Minute, nil},
		{5*time.Minute + time.Second, bot.ErrStale}, {-5*time.Minute - time.Second, bot.ErrStale},
		{24 * time.Hour, bot.ErrStale},
	} {
		if err := v.verify(signed("s", sent, nil), nil, sent.Add(tt.late)); !errors.Is(err, tt.want) {
			t.Errorf("%s late: got %v, want %v", tt.late, err, tt.want)
		}
	}
	// What is both is forged: who knows no secret learns nothing of clocks.
	if err := v.verify(signed("guess", sent, nil), nil, sent.Add(time.Hour)); !errors.Is(err, bot.ErrForged) {
		t.Errorf("got %v", err)
	}
	far := http.Header{headerTimestamp: {"9223372036854775807"}}
	far.Set(headerSignature, "v0="+hex.EncodeToString(signature([]byte("s"), far.Get(headerTimestamp), nil)))
	if err := v.verify(far, nil, sent); !errors.Is(err, bot.ErrStale) {
		t.Errorf("the end of time: %v", err)
	}
}

func TestPublishedVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(shared(t, "webhooks", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name, Platform, Secret, Body, Value, Timestamp string
		Stamp                                          string `json:"timestamp_header"`
		Header                                         string
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, tt := range vectors {
		if tt.Platform != Platform {
			continue
		}
		found++
		v, err := newVerifier([]string{tt.Secret})
		if err != nil {
			t.Fatal(err)
		}
		seconds, err := strconv.ParseInt(tt.Timestamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		h.Set(tt.Header, tt.Value)
		h.Set(tt.Stamp, tt.Timestamp)
		if err := v.verify(h, []byte(tt.Body), time.Unix(seconds, 0)); err != nil {
			t.Errorf("%s: %v", tt.Name, err)
		}
	}
	if found < 2 {
		t.Errorf("only %d vectors", found)
	}
}

// TestKnownVectors holds without the files.
func TestKnownVectors(t *testing.T) {
	t.Parallel()
	const (
		published = `token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c`
		own       = `{"token":"x","team_id":"T1","api_app_id":"A1","event":{"type":"app_mention","user":"U1","text":"<@UBOT> /ship fix it","ts":"1700000000.000100","channel":"C1","event_ts":"1700000000.000100"},"type":"event_callback","event_id":"Ev1","event_time":1700000000}`
	)
	for _, tt := range []struct{ secret, stamp, body, value string }{
		{"8f742231b10e8888abcd99yyyzzz85a5", "1531420618", published, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"},
		{"ship-slack-test-secret", "1700000000", own, "v0=8f6413a74089943e812b59c3456aa0094acb646197eb6952edb1e6bf98ff23a6"},
	} {
		seconds, err := strconv.ParseInt(tt.stamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReceiver(ReceiverConfig{Secrets: []string{tt.secret}, Now: func() time.Time { return time.Unix(seconds, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		h.Set(headerTimestamp, tt.stamp)
		h.Set(headerSignature, tt.value)
		if _, err := r.Receive(t.Context(), h, []byte(tt.body)); err != nil {
			t.Error(err)
		}
	}
}

// signature is what Slack makes of a body.
func signature(secret []byte, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	return mac.Sum(nil)
}
