package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ship/sandbox/broker"
)

// siteOf names whose list of boxes this process sees. At E2B that is all gateways
// with the same key, and with any other provider whoever has this data_dir: what
// a machine does not list may be on another.
func siteOf(s Settings) (string, error) {
	if s.Sandbox.Provider == "e2b" {
		key, err := broker.LoadKey(filepath.Join(s.DataDir, "broker.key"))
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(append([]byte("site of boxes\x00"), key...))
		return "e2b." + hex.EncodeToString(sum[:4]), nil
	}
	name, err := dataDirName(s.DataDir)
	if err != nil {
		return "", fmt.Errorf("name this machine's boxes: %w", err)
	}
	return s.Sandbox.Provider + "." + name, nil
}

// dataDirName returns a folder's name, which it gets once and then keeps. Two who give
// it one at the same time agree.
func dataDirName(dir string) (string, error) {
	path := filepath.Join(dir, "site")
	read := func() (string, error) {
		text, err := os.ReadFile(path)
		return strings.TrimSpace(string(text)), err
	}
	if name, err := read(); !errors.Is(err, fs.ErrNotExist) {
		return name, err
	}
	f, err := os.CreateTemp(dir, "site-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(rand.Text()[:8] + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) { // whole, or not at all
		return "", err
	}
	return read()
}
