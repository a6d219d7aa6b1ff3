package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/linear/lineartest"
)

// mailbox is a ship that takes Linear's webhooks, and settings that sign them.
type mailbox struct {
	t      *testing.T
	config string
	url    string
}

func newMailbox(t *testing.T) mailbox {
	t.Helper()
	ship := httptest.NewServer(linearFront(t, linearHookSecret))
	t.Cleanup(ship.Close)
	file := filepath.Join(t.TempDir(), "ship.yaml")
	text := fmt.Sprintf("linear: {client_id: app, client_secret: x, webhook_secret: [%s, older]}\n", linearHookSecret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return mailbox{t, file, ship.URL}
}

func (m mailbox) send(what string, change func(*sendOptions)) (said string, err error) {
	m.t.Helper()
	o := sendOptions{config: m.config, url: m.url}
	if change != nil {
		change(&o)
	}
	var out bytes.Buffer
	err = send(m.t.Context(), o, "linear", what, &out)
	if strings.Contains(out.String()+fmt.Sprint(err), linearHookSecret) {
		m.t.Errorf("a secret was shown: %s %v", &out, err)
	}
	return out.String(), err
}

func (m mailbox) file(text string) string {
	m.t.Helper()
	path := filepath.Join(m.t.TempDir(), "payload.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return path
}

func TestSendLinear(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	stand, err := lineartest.New(lineartest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stand.Close()
	stand.CreateTeam("ENG", "Engineering")
	_, d := stand.Delegate(stand.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Widgets are broken"}), "ada")
	var payload map[string]any
	if err := json.Unmarshal(d.Body, &payload); err != nil {
		t.Fatal(err)
	}
	payload["webhookTimestamp"] = time.Now().Add(-30 * 24 * time.Hour).UnixMilli() // as recorded ones are
	old, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	file := m.file(string(old))
	if said, err := m.send("ping", nil); err != nil || !strings.Contains(said, "200 OK: nothing to do: ignored event") {
		t.Errorf("ping: %s %v", said, err)
	}
	if said, err := m.send(file, func(o *sendOptions) { o.delivery = "6f0f1a52-0000-4000-8000-00000000000d" }); err != nil || said != "6f0f1a52-0000-4000-8000-00000000000d 200 OK: accepted\n" {
		t.Errorf("a file: %s %v", said, err)
	}
	if said, err := m.send(file, nil); err != nil || !strings.Contains(said, "already have it") {
		t.Errorf("again: %s %v", said, err)
	}
}

func TestSendLinearIsRefused(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	for what, want := range map[string]string{
		"/nothing":                   "read the fixture",
		m.file("[]"):                 "not a JSON object",
		m.file("not JSON"):           "not a JSON object",
		m.file("{}"):                 "has no type",
		m.file(`{"type":7}`):         "has no type",
		m.file(`{"type":"\u0000x"}`): "has no type",
	} {
		if _, err := m.send(what, nil); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	wrong := m.file("wrong")
	if said, err := m.send("ping", func(o *sendOptions) { o.secret = wrong }); err == nil || !strings.Contains(said, "401") {
		t.Errorf("another secret: %s %v", said, err)
	}
	if _, err := m.send("ping", func(o *sendOptions) { o.url = "http://127.0.0.1:1" }); err == nil || !strings.Contains(err.Error(), "`ship serve`") {
		t.Errorf("nobody there: %v", err)
	}
	if err := send(t.Context(), sendOptions{config: m.config}, "moon", "ping", &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "github, linear") {
		t.Errorf("another platform: %v", err)
	}
}

// TestSignLinear: only the time is changed, and the signature is bare hex over
// what is sent.
func TestSignLinear(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1794787200123)
	got, err := signLinear([]byte(`{"big":12345678901234567890,"type":"Issue","webhookTimestamp":1,"nested":{"b":1,"a":[2]}}`), "s", "id", at)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"big":12345678901234567890,"nested":{"b":1,"a":[2]},"type":"Issue","webhookTimestamp":1794787200123}`; string(got.body) != want {
		t.Errorf("got  %s\nwant %s", got.body, want)
	}
	signature := lineartest.Delivery{Body: got.body, Header: http.Header{}}.Sign("s").Header.Get("Linear-Signature")
	want := http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"Linear-Webhook"}, "Linear-Event": {"Issue"},
		"Linear-Delivery": {"id"}, "Linear-Timestamp": {"1794787200123"}, "Linear-Signature": {signature},
	}
	if diff := cmp.Diff(want, got.header); diff != "" || len(signature) != 64 {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSendRecordedWebhooks: what was recorded from Linear is taken as new.
func TestSendRecordedWebhooks(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "webhooks", "linear", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("the recorded webhooks are not here")
	}
	for _, file := range files {
		if said, err := m.send(file, nil); err != nil || !strings.Contains(said, "200 OK") {
			t.Errorf("%s: %s %v", filepath.Base(file), said, err)
		}
	}
}
