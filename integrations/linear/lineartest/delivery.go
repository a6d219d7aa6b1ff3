package lineartest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Delivery is one webhook, as Linear would send it. Linear tries again what is
// not answered with 200, with the same bytes and the old timestamp.
type Delivery struct {
	Header http.Header
	Body   []byte
}

// Sign signs the delivery with the webhook's secret, in place.
func (d Delivery) Sign(secret string) Delivery {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(d.Body)
	d.Header.Set("Linear-Signature", hex.EncodeToString(mac.Sum(nil)))
	return d
}

// ID of the delivery, which differs even between two that tell the same.
func (d Delivery) ID() string { return d.Header.Get("Linear-Delivery") }

// Again is a delivery that tells the same under another id, as when two webhooks
// are set up.
func (d Delivery) Again() Delivery {
	header := d.Header.Clone()
	header.Set("Linear-Delivery", newID())
	return Delivery{Header: header, Body: d.Body}
}

// Deliver posts a delivery and returns the status of the answer.
func Deliver(ctx context.Context, url string, d Delivery) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return 0, fmt.Errorf("deliver: %w", err)
	}
	req.Header = d.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("deliver: %w", err)
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// event wraps what happened into a delivery. The caller holds mu.
func (s *Server) event(name, action string, parts object) Delivery {
	now := s.now()
	payload := object{
		"type": name, "action": action, "createdAt": stamp(now), "organizationId": s.orgID,
		"oauthClientId": s.opts.ClientID, "webhookId": s.webhookID, "webhookTimestamp": now.UnixMilli(),
	}
	for key, value := range parts {
		payload[key] = value
	}
	body := mustJSON(payload)
	if v := s.opts.Validator; v != nil {
		if err := v.Payload(name, body); err != nil {
			s.Note("webhook: %v", err)
		}
	}
	header := http.Header{}
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("User-Agent", "Linear-Webhook")
	header.Set("Linear-Delivery", newID())
	header.Set("Linear-Event", name)
	header.Set("Linear-Timestamp", strconv.FormatInt(now.UnixMilli(), 10))
	return Delivery{Header: header, Body: body}
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }

// orNull is a time that may not be set.
func orNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}
