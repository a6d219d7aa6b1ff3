package linear

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/bot"
	"ship/session/memory"
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

func TestReceiverRefusesToWorkWithoutSecret(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{nil, {}, {""}, {"good", " "}} {
		if _, err := NewReceiver(ReceiverConfig{Secrets: secrets, Vault: &memory.Vault{}, Tokens: access(t, &memory.Vault{})}); err == nil {
			t.Errorf("secrets %q were accepted", secrets)
		}
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	const known, body = "a secret", `{"type":"Issue"}`
	good := sign(known, []byte(body))
	tests := []struct {
		name      string
		secrets   []string
		signature string
		body      string
		want      error
	}{
		{"good", []string{known}, good, body, nil},
		{"capitals", []string{known}, strings.ToUpper(good), body, nil},
		{"first of two", []string{known, "old"}, good, body, nil},
		{"second of two", []string{"new", known}, good, body, nil},
		{"other body", []string{known}, good, body + " ", bot.ErrForged},
		{"other secret", []string{"guess"}, good, body, bot.ErrForged},
		{"missing", []string{known}, "", body, bot.ErrForged},
		{"with a prefix", []string{known}, "sha256=" + good, body, bot.ErrForged},
		{"cut short", []string{known}, good[:62], body, bot.ErrForged},
		{"not hex", []string{known}, strings.Repeat("zz", 32), body, bot.ErrForged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
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
	var vectors []struct {
		Name, Platform, Secret, Body, Header, Value string
		Sent                                        time.Time `json:"webhookTimestamp_utc"`
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, v := range vectors {
		if v.Platform != Platform {
			continue
		}
		seen++
		r, err := NewReceiver(ReceiverConfig{
			Secrets: []string{"another", v.Secret}, Vault: &memory.Vault{}, Tokens: access(t, &memory.Vault{}), Now: func() time.Time { return v.Sent },
		})
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		h.Set(v.Header, v.Value)
		h.Set(headerDelivery, deliveryID)
		got, err := r.Receive(t.Context(), h, []byte(v.Body))
		if err != nil || len(got.Deliveries) != 1 {
			t.Errorf("%s: %+v, %v", v.Name, got, err)
		}
	}
	if seen == 0 {
		t.Error("no vector is for this platform")
	}
}

func TestFreshness(t *testing.T) {
	t.Parallel()
	stamp := func(age time.Duration) any { return now.Add(-age).UnixMilli() }
	tests := []struct {
		name   string
		body   any // webhookTimestamp
		header string
		want   error
	}{
		{"now", stamp(0), "", nil},
		{"first repetition", stamp(61 * time.Second), "", nil},
		{"last repetition", stamp(7*time.Hour + 2*time.Minute), "", nil},
		{"at the limit", stamp(8 * time.Hour), "", nil},
		{"too old", stamp(8*time.Hour + time.Second), "", bot.ErrForged},
		{"a little ahead", stamp(-time.Minute), "", nil},
		{"from the future", stamp(-61 * time.Second), "", bot.ErrForged},
		{"the body's word counts", stamp(9 * time.Hour), "1794787200000", bot.ErrForged},
		{"header alone", nil, "1794787200000", nil},
		{"old header alone", nil, "1594787200000", bot.ErrForged},
		{"none", nil, "", bot.ErrMalformed},
		{"header is no number", nil, "now", bot.ErrMalformed},
		{"a float", 1794787200000.5, "", nil},
		{"negative", -5, "", bot.ErrMalformed},
		{"not a number", "soon", "", bot.ErrMalformed},
		{"beyond all time", 1e300, "", bot.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := delegated()
			delete(e, "webhookTimestamp")
			if tt.body != nil {
				e["webhookTimestamp"] = tt.body
			}
			h, body := e.sign(t)
			if tt.header != "" {
				h.Set(headerTimestamp, tt.header)
			}
			_, err := receiver(t).Receive(t.Context(), h, body)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}
