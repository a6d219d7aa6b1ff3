package slack

import "testing"

func TestTitle(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                    "",
		"fix the flaky test":  "fix the flaky test",
		"fix it\nand tell me": "fix it",
		" fix   it ":          "fix it",
		"Discounts are off by one cent. A discount of 15 %":       "Discounts are off by one cent",
		"Discounts are off: https://linear.app/acme/issue/SHOP-1": "Discounts are off",
		"https://linear.app/acme/issue/SHOP-1 please":             "please",
		"https://linear.app/acme/issue/SHOP-1":                    "https://linear.app/acme/issue/SHOP-1",
		"Update v1.2 to v1.3 in go.mod":                           "Update v1.2 to v1.3 in go.mod",
		"Use e.g. tabs here, as everywhere":                       "Use e.g. tabs here, as everywhere",
		"Why does login fail? It worked":                          "Why does login fail",
		"Stop. Then go on with what is left":                      "Stop. Then go on with what is left",
	} {
		if got := titleOf(text); got != want {
			t.Errorf("titleOf(%q) = %q, want %q", text, got, want)
		}
	}
}
