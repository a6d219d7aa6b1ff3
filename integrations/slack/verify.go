package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ship/bot"
)

// Headers of a delivery.
const (
	headerSignature   = "X-Slack-Signature"
	headerTimestamp   = "X-Slack-Request-Timestamp"
	headerRetry       = "X-Slack-Retry-Num"
	headerRetryReason = "X-Slack-Retry-Reason"
)

// window is how far Slack's clock and ours may be apart, and how late a
// delivery may be: what Slack's own libraries allow.
const window = 5 * time.Minute

// verifier knows the secrets of the webhooks.
type verifier struct{ bot.Signing }

func newVerifier(secrets []string) (verifier, error) {
	signing, err := bot.NewSigning(Platform, "signing secret", secrets)
	return verifier{signing}, err
}

// verify checks the signature over the timestamp and the raw body, and then the
// timestamp: what is stale was genuine once. How long the first takes does not
// depend on which secret fits, or how nearly.
func (v verifier) verify(h http.Header, body []byte, now time.Time) error {
	stamp := h.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("no timestamp: %w", bot.ErrForged)
	}
	digits, ok := strings.CutPrefix(h.Get(headerSignature), "v0=")
	got, err := hex.DecodeString(digits)
	if !ok || err != nil || len(got) != sha256.Size {
		return fmt.Errorf("no v0 signature: %w", bot.ErrForged)
	}
	if err := v.Verify(got, []byte("v0:"+stamp+":"), body); err != nil {
		return err
	}
	return fresh(time.Unix(seconds, 0), now)
}

// fresh refuses what is not from about now.
func fresh(sent, now time.Time) error {
	if age := now.Sub(sent); age.Abs() > window {
		return fmt.Errorf("sent %s ago: %w", age.Round(time.Second), bot.ErrStale)
	}
	return nil
}
