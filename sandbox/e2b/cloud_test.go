package e2b_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"testing"

	"ship/config"
	"ship/sandbox"
	"ship/sandbox/e2b"
	"ship/sandbox/e2b/e2btest"
	"ship/sandbox/sandboxtest"
)

// TestCloud runs the contract at E2B itself, which costs a little. The template
// has to have python3, and the program has to be static.
func TestCloud(t *testing.T) {
	key, template := os.Getenv("SHIP_TEST_E2B_API_KEY"), os.Getenv("SHIP_TEST_E2B_TEMPLATE")
	if key == "" || template == "" {
		t.Skip("SHIP_TEST_E2B_API_KEY and SHIP_TEST_E2B_TEMPLATE are not set: E2B itself is not asked")
	}
	program := os.Getenv("SHIP_TEST_E2B_GUEST")
	if err := e2b.CheckProgram(program); err != nil {
		t.Skipf("SHIP_TEST_E2B_GUEST has to name a ship that runs there, as make build makes it: %v", err)
	}
	seal, vault, transport := make([]byte, 32), &e2btest.Vault{}, &http.Transport{}
	_, _ = rand.Read(seal)
	t.Cleanup(transport.CloseIdleConnections)
	sandboxtest.Run(t, sandboxtest.Factory{
		Open: func(t *testing.T) sandbox.Provider {
			p, err := e2b.New(e2b.Config{
				Settings:  e2b.Settings{APIKey: config.NewSecret(key), Template: template, Guest: program},
				PublicURL: "https://example.com", Key: seal, Vault: vault, Transport: transport,
			})
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Echo: func(port int) []string { return []string{"python3", "-c", fmt.Sprintf(pythonEcho, port)} },
	})
}

const pythonEcho = `
import socket
s = socket.create_server(("127.0.0.1", %d))
while True:
    c, _ = s.accept()
    while data := c.recv(65536):
        c.sendall(data)
    c.close()
`
