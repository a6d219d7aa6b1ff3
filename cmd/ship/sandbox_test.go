package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ship/config"
	"ship/sandbox"
	"ship/sandbox/docker/dockertest"
	"ship/sandbox/e2b/e2btest"
)

// staticProgram is the head of one for x86-64 that needs no library.
func staticProgram(t *testing.T) string {
	t.Helper()
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16], head[18], head[20], head[52], head[54], head[58] = 2, 62, 1, 64, 56, 64 // elf(5)
	path := filepath.Join(t.TempDir(), "ship")
	if err := os.WriteFile(path, head, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOpenE2B: what is missing is said at the start, and E2B is asked whether
// it knows the key.
func TestOpenE2B(t *testing.T) {
	t.Parallel()
	server := e2btest.New(t, e2btest.Options{})
	good := Settings{PublicURL: "https://ship.example.com", DataDir: t.TempDir()}
	good.Sandbox.Provider = "e2b"
	good.Sandbox.E2B.APIKey, good.Sandbox.E2B.APIURL = config.NewSecret(e2btest.Key), server.URL
	good.Sandbox.E2B.Guest = staticProgram(t)
	if !slices.Contains(good.secrets(), e2btest.Key) {
		t.Error("the API key is not among the secrets that are kept out of texts")
	}
	for want, spoil := range map[string]func(*Settings){
		"":                         func(*Settings) {},
		"public_url is missing":    func(s *Settings) { s.PublicURL = "" },
		"begin with https":         func(s *Settings) { s.PublicURL = "http://ship.example.com" },
		"ports 443 and 80":         func(s *Settings) { s.PublicURL = "https://ship.example.com:8443" },
		"api_key is missing":       func(s *Settings) { s.Sandbox.E2B.APIKey = config.Secret{} },
		"refused the credentials":  func(s *Settings) { s.Sandbox.E2B.APIKey = config.NewSecret("e2b_wrong") },
		"no such file":             func(s *Settings) { s.Sandbox.E2B.Guest = "/no/such/program" },
		"use local, docker or e2b": func(s *Settings) { s.Sandbox.Provider = "moon" },
		"can be read by others":    func(s *Settings) { s.DataDir = dirWithOpenKey(t) },
	} {
		s := good
		spoil(&s)
		_, err := openSandbox(t.Context(), s, &e2btest.Vault{}, slog.New(slog.DiscardHandler))
		switch {
		case want == "" && err != nil:
			t.Errorf("all is well, and yet: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "e2b_")):
			t.Errorf("want %q, got %v", want, err)
		case want == "refused the credentials" && !errors.Is(err, sandbox.ErrAuth):
			t.Errorf("not ErrAuth: %v", err)
		}
	}
}

// TestE2BDoor: a worker opens the broker's socket whatever makes its boxes, also
// at the first start, when there is nothing in data_dir.
func TestE2BDoor(t *testing.T) {
	t.Parallel()
	server := e2btest.New(t, e2btest.Options{})
	s := Settings{PublicURL: "https://ship.example.com", DataDir: t.TempDir()}
	s.Sandbox.Provider = "e2b"
	s.Sandbox.E2B.APIKey, s.Sandbox.E2B.APIURL = config.NewSecret(e2btest.Key), server.URL
	s.Sandbox.E2B.Guest = staticProgram(t)
	if _, err := openSandbox(t.Context(), s, &e2btest.Vault{}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it closes when it has opened
	a := &app{role: roleWorker, socket: filepath.Join(brokerDir(s), "broker.sock"), log: slog.New(slog.DiscardHandler)}
	if err := a.runDoor(ctx); err != nil {
		t.Errorf("the broker's socket: %v", err)
	}
}

func dirWithOpenKey(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "broker.key"), make([]byte, 32), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDoctorE2B: doctor says what ship serve would.
func TestDoctorE2B(t *testing.T) {
	t.Parallel()
	server := e2btest.New(t, e2btest.Options{})
	s := Settings{PublicURL: "https://ship.example.com"}
	s.Sandbox.Provider = "e2b"
	s.Sandbox.E2B.APIKey, s.Sandbox.E2B.APIURL = config.NewSecret(e2btest.Key), server.URL
	s.Sandbox.E2B.Guest = staticProgram(t)
	if got := checkSandbox(t.Context(), &patient{settings: s}); got.Status != "ok" {
		t.Errorf("%+v", got)
	}
	if got := checkOpenCode(t.Context(), &patient{settings: s}); got.Status != "ok" {
		t.Errorf("%+v", got)
	}
	s.Sandbox.E2B.APIKey = config.NewSecret("e2b_wrong")
	if got := checkSandbox(t.Context(), &patient{settings: s}); got.Status != "fail" || !strings.Contains(got.Remedy, "valid key") || strings.Contains(got.What, "e2b_wrong") {
		t.Errorf("%+v", got)
	}
}

// dockerSettings are those of a ship whose boxes a stand-in for an engine makes.
func dockerSettings(t *testing.T) Settings {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the program of the guest in this test is for x86-64")
	}
	s := Settings{DataDir: t.TempDir()}
	s.Sandbox.Provider = "docker"
	s.Sandbox.Docker.Host, s.Sandbox.Docker.Image = dockertest.New(t).Host, dockertest.Image
	s.Sandbox.Docker.Guest = staticProgram(t)
	return s
}

// TestOpenDocker: what is missing is said at the start.
func TestOpenDocker(t *testing.T) {
	t.Parallel()
	good := dockerSettings(t)
	for want, spoil := range map[string]func(*Settings){
		"":                           func(*Settings) {},
		"docker pull nowhere":        func(s *Settings) { s.Sandbox.Docker.Image = "nowhere" },
		"systemctl start docker":     func(s *Settings) { s.Sandbox.Docker.Host = "unix:///nowhere.sock" },
		"has no runtime runsc":       func(s *Settings) { s.Sandbox.Docker.Runtime = "runsc" },
		"no such file":               func(s *Settings) { s.Sandbox.Docker.Guest = "/no/such/program" },
		"there is no program at /no": func(s *Settings) { s.Agent.OpenCode = "/no" },
	} {
		s := good
		spoil(&s)
		_, err := openSandbox(t.Context(), s, nil, slog.New(slog.DiscardHandler))
		if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		got := checkSandbox(t.Context(), &patient{settings: s})
		if (got.Status == "ok") != (want == "") || want != "" && !strings.Contains(got.What, want) {
			t.Errorf("doctor, want %q, got %+v", want, got)
		}
	}
	if got := checkOpenCode(t.Context(), &patient{settings: good}); got.Status != "ok" || !strings.Contains(got.What, "part of the image") {
		t.Errorf("%+v", got)
	}
}
