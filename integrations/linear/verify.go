package linear

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"

	"ship/bot"
)

const (
	// maxSkew is how far ahead of ours Linear's clock may be.
	maxSkew = time.Minute
	// maxAge of a delivery. Linear sends again after a minute, an hour and six
	// hours, and a repetition still carries the time of the first try: to
	// insist on a minute, as Linear's own library does, is to refuse every
	// repetition. What was seen before, the dedupe refuses.
	maxAge = 8 * time.Hour
)

// verifier knows the secrets of the webhooks.
type verifier struct{ bot.Signing }

func newVerifier(secrets []string) (verifier, error) {
	signing, err := bot.NewSigning(Platform, "webhook secret", secrets)
	return verifier{signing}, err
}

// verify checks the header's value, bare hexadecimal, over the raw body. How
// long it takes does not depend on which secret fits, or how nearly.
func (v verifier) verify(signature string, body []byte) error {
	got, err := hex.DecodeString(signature)
	if err != nil || len(got) != sha256.Size {
		return fmt.Errorf("no sha256 signature: %w", bot.ErrForged)
	}
	return v.Verify(got, body)
}

// sentAt is when a webhook was sent. The body's word counts, for it is signed;
// the header stands in only where the body says nothing. Both are in ms.
func sentAt(stamp float64, header string) (time.Time, error) {
	if stamp == 0 {
		ms, err := strconv.ParseInt(header, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("no timestamp: %w", bot.ErrMalformed)
		}
		stamp = float64(ms)
	}
	if !(stamp > 0) || stamp > math.MaxInt64/2 {
		return time.Time{}, fmt.Errorf("timestamp: %w", bot.ErrMalformed)
	}
	return time.UnixMilli(int64(stamp)).UTC(), nil
}

// fresh refuses what nobody would send now.
func fresh(sent, now time.Time) error {
	switch age := now.Sub(sent); {
	case age < -maxSkew:
		return fmt.Errorf("sent in %s from now: %w", -age.Round(time.Second), bot.ErrForged)
	case age > maxAge:
		return fmt.Errorf("sent %s ago: %w", age.Round(time.Second), bot.ErrForged)
	}
	return nil
}
