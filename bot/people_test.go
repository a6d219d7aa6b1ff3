package bot

import (
	"strings"
	"testing"
)

func TestPlainName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Ada Lovelace": "Ada Lovelace", " Zoë  O'Neil-Smith Jr. ": "Zoë O'Neil-Smith Jr", "@all": "all", "[x](https://y)": "xhttpsy",
		"`a`\u202e\u2066b": "ab", "\xff\xfe": "", "...": "", "": "", "李 雷": "李 雷", strings.Repeat("é", 90): strings.Repeat("é", 30),
		"a\u2028b": "a b",
	} {
		if got := PlainName(in); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
}
