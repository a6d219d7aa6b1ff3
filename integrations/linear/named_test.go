package linear

import (
	"slices"
	"strings"
	"testing"
)

// addresses and the issues that they name, as workspace/identifier.
var addresses = map[string][]string{
	"https://linear.app/acme/issue/ENG-42":                                    {"acme/ENG-42"},
	"fix https://linear.app/acme/issue/ENG-42/login-test-is-flaky please":     {"acme/ENG-42"},
	"see https://linear.app/acme/issue/eng-42/.":                              {"acme/ENG-42"},
	"HTTPS://LINEAR.APP/Acme/issue/ENG-42":                                    {"acme/ENG-42"},
	"*https://linear.app/acme/issue/ENG-42* (https://linear.app/b/issue/A-1)": {"acme/ENG-42", "b/A-1"},
	"[the issue](https://linear.app/acme/issue/ENG-42/x#comment-1f), now":     {"acme/ENG-42"},
	"<https://linear.app/acme/issue/ENG-42?a=b|ENG-42>":                       {"acme/ENG-42"},
	"“https://linear.app/acme/issue/ENG-42”":                                  {"acme/ENG-42"},
	"https://linear.app/acme/issue/A-1 https://linear.app/ACME/issue/a-1/x":   {"acme/A-1"},
	"https://linear.app/a/issue/A-1\nhttps://linear.app/a/issue/A-2\nhttps://linear.app/a/issue/A-3\nhttps://linear.app/a/issue/A-4": {
		"a/A-1", "a/A-2", "a/A-3",
	},

	"": nil, "ENG-42": nil, "linear.app/acme/issue/ENG-42": nil,
	"http://linear.app/acme/issue/ENG-42":                            nil,
	"xhttps://linear.app/acme/issue/ENG-42":                          nil,
	"https://linear.app.evil.com/acme/issue/ENG-42":                  nil,
	"https://evil.com/linear.app/acme/issue/ENG-42":                  nil,
	"https://evil.com/?to=https://linear.app/acme/issue/ENG-42":      nil,
	"https://evil.com/https://linear.app/acme/issue/ENG-42":          nil,
	"https://linear.app@evil.com/acme/issue/ENG-42":                  nil,
	"https://ada:pw@linear.app/acme/issue/ENG-42":                    nil,
	"https://linear.app:8443/acme/issue/ENG-42":                      nil,
	"https://linear.app./acme/issue/ENG-42":                          nil,
	"https://linear.app\\@evil.com/acme/issue/ENG-42":                nil,
	"https://linear.app%2eevil.com/acme/issue/ENG-42":                nil,
	"https://linear.app。evil.com/acme/issue/ENG-42":                  nil,
	"https://notlinear.app/acme/issue/ENG-42":                        nil,
	"https://sub.linear.app/acme/issue/ENG-42":                       nil,
	"https://linear.app/acme/issues/ENG-42":                          nil,
	"https://linear.app/acme/issue/ENG":                              nil,
	"https://linear.app/acme/issue/ENG-0":                            nil,
	"https://linear.app/acme/issue/ENG-4%32":                         nil,
	"https://linear.app/acme/issue/ENG-42/slug/more":                 nil,
	"https://linear.app/acme/project/ENG-42":                         nil,
	"https://linear.app//issue/ENG-42":                               nil,
	"https://linear.app/../issue/ENG-42":                             nil,
	"https://linear.app/acme%2Fissue%2FENG-42/issue":                 nil,
	"https://linear.app/acme/issue/6f0f1a52-0000-4000-8000-00000001": nil,
}

func TestNamedIn(t *testing.T) {
	t.Parallel()
	for text, want := range addresses {
		var got []string
		for _, n := range namedIn(text) {
			got = append(got, n.workspace+"/"+n.key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}

// FuzzNamedIn: whatever is found stands in the text as it is on Linear's own
// site.
func FuzzNamedIn(f *testing.F) {
	for text := range addresses {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := namedIn(text)
		if len(all) > maxLinks {
			t.Errorf("%d issues", len(all))
		}
		for i, n := range all {
			address := "https://" + site + "/" + n.workspace + "/issue/" + n.key
			if !strings.Contains(strings.ToLower(text), strings.ToLower(address)) || slices.Contains(all[:i], n) {
				t.Errorf("%q in %q", address, text)
			}
			if !(thread{organization: org, issue: n.key}).silent() {
				t.Errorf("%q is no issue of a thread", n.key)
			}
		}
	})
}
