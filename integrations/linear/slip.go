package linear

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ship/config/signature"
)

const (
	// ticketTime is how long a ticket lets somebody begin an installation.
	ticketTime = 24 * time.Hour
	// stateTime is how long an installation may take in the browser.
	stateTime = time.Hour
	// maxSlip bounds what is looked at.
	maxSlip = 1024
)

// What slips are for. One does not pass for another.
const (
	kindTicket = "ticket"
	kindState  = "state"
)

var (
	errForgedSlip = errors.New("not signed by us")
	errStaleSlip  = errors.New("too old")
)

// slip is a signed piece of paper that others carry for us.
type slip struct {
	// ID tells it from all others.
	ID string `json:"i"`
	// Ticket is the id of the ticket that a state goes back to.
	Ticket string `json:"t,omitempty"`
	// Until is when it is no good any more, in seconds since 1970.
	Until int64 `json:"u"`
}

func newSlip(until time.Time) slip { return slip{ID: rand.Text(), Until: until.Unix()} }

// notary signs slips with its first key and takes those of any.
type notary []signature.Key

// newNotary makes keys of secrets, which are random already. They have nothing
// to do with those that tokens are sealed with.
func newNotary(secrets []string) (notary, error) {
	if len(secrets) == 0 {
		return nil, errors.New("no key to sign installations with")
	}
	var n notary
	for _, secret := range secrets {
		key, err := signature.Derive([]byte(secret), "ship linear installations")
		if err != nil {
			return nil, fmt.Errorf("make a key to sign installations with: %w", err)
		}
		n = append(n, key)
	}
	return n, nil
}

// sign writes a slip of a kind. Whoever brings it back has to bring bound along.
func (n notary) sign(kind string, s slip, bound string) (string, error) {
	plain, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("write a %s: %w", kind, err)
	}
	text := base64.RawURLEncoding.EncodeToString(plain)
	return text + "." + n[0].Sign(deed(kind, text, bound)), nil
}

// read returns a slip that was signed as this kind; errForgedSlip, or
// errStaleSlip for a genuine one.
func (n notary) read(kind, signed, bound string, now time.Time) (slip, error) {
	text, mac, ok := strings.Cut(signed, ".")
	if !ok || len(signed) > maxSlip {
		return slip{}, errForgedSlip
	}
	if !n.signed(deed(kind, text, bound), mac) {
		return slip{}, errForgedSlip
	}
	var s slip
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(plain, &s) != nil {
		return slip{}, errForgedSlip
	}
	if !now.Before(time.Unix(s.Until, 0)) {
		return slip{}, errStaleSlip
	}
	return s, nil
}

// signed asks every key, so that the time it takes does not tell which it was.
func (n notary) signed(deed, mac string) bool {
	genuine := false
	for _, key := range n {
		genuine = key.Signed(deed, mac) || genuine
	}
	return genuine
}

// deed is what is signed: three texts, of which the first two have no zero byte
// in them.
func deed(kind, text, bound string) string { return kind + "\x00" + text + "\x00" + bound }
