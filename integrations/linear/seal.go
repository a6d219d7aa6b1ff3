package linear

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// What is kept is sealed: a version byte, four bytes that name the key, then
// AES-256-GCM's nonce, ciphertext and tag. What it is kept under, and the five
// bytes before, are authenticated with it, so that no workspace's tokens pass
// for another's.
const (
	sealVersion = 1
	keyIDSize   = 4
	sealHeader  = 1 + keyIDSize
)

// errSealed: none of the keys opens it, or it was tampered with.
var errSealed = errors.New("none of the keys opens it")

// keyring seals with its first key and opens with any.
type keyring []sealKey

type sealKey struct {
	id   []byte
	aead cipher.AEAD
}

// newKeyring makes keys of secrets, which are random already.
func newKeyring(secrets []string) (keyring, error) {
	if len(secrets) == 0 {
		return nil, errors.New("no key to encrypt tokens with")
	}
	var ring keyring
	for _, secret := range secrets {
		k, err := newSealKey(secret)
		if err != nil {
			return nil, fmt.Errorf("make a key to encrypt tokens with: %w", err)
		}
		ring = append(ring, k)
	}
	return ring, nil
}

func newSealKey(secret string) (sealKey, error) {
	if secret == "" {
		return sealKey{}, errors.New("it is empty")
	}
	// The id and the key come out of one secret, and tell nothing of each other.
	material, err := hkdf.Key(sha256.New, []byte(secret), nil, "ship linear tokens", 32+keyIDSize)
	if err != nil {
		return sealKey{}, err
	}
	block, err := aes.NewCipher(material[:32])
	if err != nil {
		return sealKey{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealKey{id: material[32:], aead: aead}, err
}

// seal encrypts what is kept under a name.
func (ring keyring) seal(name string, plain []byte) []byte {
	k := ring[0]
	header := append([]byte{sealVersion}, k.id...)
	return k.aead.Seal(header, nil, plain, authenticated(header, name))
}

// open decrypts it; errSealed.
func (ring keyring) open(name string, sealed []byte) ([]byte, error) {
	if len(sealed) < sealHeader {
		return nil, errSealed
	}
	header, box := sealed[:sealHeader], sealed[sealHeader:]
	if header[0] != sealVersion {
		return nil, fmt.Errorf("it was sealed by a newer release (%d): %w", header[0], errSealed)
	}
	for _, k := range ring {
		if !bytes.Equal(k.id, header[1:]) {
			continue
		}
		if plain, err := k.aead.Open(nil, nil, box, authenticated(header, name)); err == nil {
			return plain, nil
		}
	}
	return nil, errSealed
}

func authenticated(header []byte, name string) []byte {
	return append(bytes.Clone(header), name...)
}
