package e2b

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ship/sandbox"
)

// Vault keeps what has to outlive this process and to be the same for all
// gateways. Names are letters, digits, dot, dash and underscore.
type Vault interface {
	// Load returns the value under a name and its version; nil and 0 when there
	// is none.
	Load(ctx context.Context, name string) (value []byte, version int64, err error)
	// Swap replaces a value if its version is still the one given, 0 for none,
	// and tells whether it did. A ttl of zero keeps it for good; an empty value
	// removes it. Repeating a swap whose answer was lost: true.
	Swap(ctx context.Context, name string, version int64, value []byte, ttl time.Duration) (swapped bool, err error)
}

// record is what all gateways know of the one box of a key, besides what E2B
// says. Without it nothing is lost but time: the box is found by its labels,
// and its tokens are asked for again.
type record struct {
	Box        string `json:"box"`
	Generation int64  `json:"generation"`
	// Pauses counts how often it was paused, as a file in the box does.
	Pauses int    `json:"pauses,omitempty"`
	Access access `json:"access"`
}

// recordLife is how long a record is kept after it was last written: longer
// than any box lives, and not for ever.
const recordLife = 30 * 24 * time.Hour

// records keeps one record per key, sealed.
type records struct {
	vault Vault
	seal  cipher.AEAD
}

func newRecords(vault Vault, key []byte) (*records, error) {
	block, err := aes.NewCipher(derive(key, "records"))
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	return &records{vault, seal}, err
}

// derive makes a key of 32 bytes for one purpose.
func derive(key []byte, purpose string) []byte {
	out, err := hkdf.Key(sha256.New, key, nil, "ship sandbox e2b "+purpose, 32)
	if err != nil {
		panic(err) // 32 bytes are never too many (RFC 5869, 2.3)
	}
	return out
}

func recordName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "e2b." + hex.EncodeToString(sum[:16])
}

// load returns the zero record when there is none, or none that we can read.
func (rs *records) load(ctx context.Context, key string) (record, int64, error) {
	name := recordName(key)
	sealed, version, err := rs.vault.Load(ctx, name)
	if err != nil {
		return record{}, 0, fmt.Errorf("loading what is known of the box: %w: %w", sandbox.ErrTransient, err)
	}
	var r record
	if len(sealed) < rs.seal.NonceSize() {
		return r, version, nil
	}
	nonce, rest := sealed[:rs.seal.NonceSize()], sealed[rs.seal.NonceSize():]
	text, err := rs.seal.Open(nil, nonce, rest, []byte(name))
	if err != nil || json.Unmarshal(text, &r) != nil {
		return record{}, version, nil
	}
	return r, version, nil
}

// swap replaces a record if nobody else did meanwhile.
func (rs *records) swap(ctx context.Context, key string, version int64, r record) (bool, error) {
	name := recordName(key)
	text, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	nonce := make([]byte, rs.seal.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	sealed := rs.seal.Seal(nonce, nonce, text, []byte(name))
	swapped, err := rs.vault.Swap(ctx, name, version, sealed, recordLife)
	if err != nil {
		return false, fmt.Errorf("keeping what is known of the box: %w: %w", sandbox.ErrTransient, err)
	}
	return swapped, nil
}

// forget removes the record of a key, if it is still of this box.
func (rs *records) forget(ctx context.Context, key, box string) error {
	r, version, err := rs.load(ctx, key)
	if err != nil || version == 0 || r.Box != box {
		return err
	}
	_, err = rs.vault.Swap(ctx, recordName(key), version, nil, 0)
	return err
}

var errContended = errors.New("what is known of the box changes all the time")

// update changes the record of a box. A record of another box stays as it is:
// then ours is not the one of its key.
func (rs *records) update(ctx context.Context, key, box string, change func(*record)) (record, error) {
	for range 10 {
		r, version, err := rs.load(ctx, key)
		if err != nil {
			return record{}, err
		}
		foreign := r.Box != "" && r.Box != box
		if foreign {
			r = record{}
		}
		r.Box = box
		before := r
		change(&r)
		if foreign || r == before && version != 0 {
			return r, nil
		}
		if swapped, err := rs.swap(ctx, key, version, r); err != nil || swapped {
			return r, err
		}
	}
	return record{}, fmt.Errorf("%w: %w", sandbox.ErrBusy, errContended)
}
