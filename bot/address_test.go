package bot

import (
	"strings"
	"testing"
)

func TestCheckPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://ship.example.com":         "",
		"https://ship.example.com/at/home": "",
		"https://8.8.8.8:8443/ship":        "",
		"https://[2001:4860:4860::8888]":   "",
		"":                                 "is not one like",
		"https://u:hunter2@a.example.com":  "is not one like",
		"https://ship.example.com/?a=b":    "is not one like",
		"https://ship.example.com/#a":      "is not one like",
		"http://ship.example.com":          "https, and Slack delivers to nothing else",
		"https://localhost:8080":           "localhost is not a public host",
		"https://ship":                     "ship is not a public host",
		"https://ship.local":               "is not a public host",
		"https://a.ship.INTERNAL.":         "is not a public host",
		"https://me.localhost":             "is not a public host",
		"https://127.0.0.1":                "is not a public host",
		"https://192.168.1.2":              "is not a public host",
		"https://169.254.169.254":          "is not a public host",
		"https://[::1]":                    "is not a public host",
		"https://0.0.0.0":                  "is not a public host",
	} {
		err := CheckPublic(address, "Slack")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("it repeats a password: %v", err)
		}
	}
}
