package guest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// longestSleep bounds how long a jump of the clock goes unnoticed.
const longestSleep = 30 * time.Second

// FormatExpiry is what the expiry file of a box holds.
func FormatExpiry(at time.Time) []byte {
	return []byte(at.UTC().Format(time.RFC3339Nano) + "\n")
}

func parseExpiry(text []byte) (time.Time, error) {
	return time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text)))
}

// awaitExpiry returns errEnd when the box has expired. The expiry only ever
// moves away, so there is no need to look before the one that is known.
func awaitExpiry(ctx context.Context, path string) error {
	if path == "" {
		<-ctx.Done()
		return nil
	}
	for {
		left, err := untilExpiry(path)
		if err != nil {
			return err
		}
		if left <= 0 {
			return errEnd
		}
		timer := time.NewTimer(min(left, longestSleep))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// untilExpiry fails when nobody has said how long the box may live: then it
// ends at once.
func untilExpiry(path string) (time.Duration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("reading when the box ends: %w", err)
	}
	at, err := parseExpiry(text)
	if err != nil {
		return 0, fmt.Errorf("reading when the box ends: %w", err)
	}
	return time.Until(at), nil
}
