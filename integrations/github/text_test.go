package github

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	if got := visible("a <!-- hidden\n@x --> b <!-- open"); got != "a  b" {
		t.Errorf("got %q", got)
	}
}

func TestComposeKeepsTheLimits(t *testing.T) {
	t.Parallel()
	marker := statusMarker("gh.1.1")
	body := compose(marker, "```go\n"+strings.Repeat("é x\n", 20000))
	if len(body) > maxComment || !utf8.ValidString(body) {
		t.Fatalf("%d bytes, valid %t", len(body), utf8.ValidString(body))
	}
	if !bears(body, marker) || strings.Count(body, "```")%2 != 0 {
		t.Errorf("begins with %q, ends with %q", body[:60], body[len(body)-80:])
	}
	if short := compose(marker, "x"); short != marker+"\nx" {
		t.Errorf("short is %q", short)
	}
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	marker := statusMarker("gh.1.2")
	for body, want := range map[string]bool{
		marker: true, marker + "\nText": true, marker + " \r\nText": true,
		"": false, "> " + marker: false, "Text\n" + marker: false, marker + " Text": false, statusMarker("gh.1.23"): false,
	} {
		if got := bears(body, marker); got != want {
			t.Errorf("bears(%q) is %t", body, got)
		}
	}
	if m := sayMarker("a-->b\n--!><x"); strings.Count(m, "--") != 2 || strings.Contains(m, "\n") {
		t.Errorf("a hidden value breaks out of %q", m)
	}
	if got := firstMarker("  " + marker + "\nText"); got != marker {
		t.Errorf("first marker is %q", got)
	}
}
