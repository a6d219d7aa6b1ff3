package slack

import (
	"strings"
	"testing"
	"unicode/utf8"

	"ship/bot"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text       string
		more, room int
		want       string
	}{
		{"", 0, 10, ""},
		{"all of it", 0, 9, "all of it"},
		{"one\ntwo", 0, 9, "one\ntwo"},
		{strings.Repeat("a", 50) + strings.Repeat("b", 50), 0, 84, strings.Repeat("a", 10) + "\n[80 bytes are left out here]\n" + strings.Repeat("b", 10)},
		{"aaaaaaaa" + strings.Repeat("\n", 60) + "bbbb", 0, 80, "aaaaaaaa\n[59 bytes are left out here]\n\nbbbb"},
		{strings.Repeat("ä", 50), 0, 75, "ää\n[92 bytes are left out here]\nää"},
		{"the beginning", 7, 200, "the beginning\n[7 bytes are left out here]\n"},
		{"the beginning", 7, 67, "the\n[17 bytes are left out here]\n"},
	} {
		if got := excerpt(tt.text, tt.more, tt.room); got != tt.want {
			t.Errorf("%.20q in %d: %q", tt.text, tt.room, got)
		}
	}
}

// FuzzExcerpt: whatever is in a file, it takes no more room than there is, and
// what is shown of it is from its beginning and its end.
func FuzzExcerpt(f *testing.F) {
	f.Add(strings.Repeat("\n", 500), 0, 100)
	f.Add(strings.Repeat("a\r\n\u2028b\u0085", 100), 9, 300)
	f.Add(strings.Repeat("\U0001F600", 100), 0, 77)
	f.Add("\xff\xfe", 0, 1000)
	f.Fuzz(func(t *testing.T, text string, more, room int) {
		room, more = maxGap+room&0xffff, max(more&0xffffff, 0)
		text = strings.ToValidUTF8(text, "")
		got := excerpt(text, more, room)
		if quoted := (bot.Remark{Text: got}).String(); len(quoted)-len((bot.Remark{}).String()) > room {
			t.Errorf("%d bytes in %d", len(quoted), room)
		}
		head, tail := beginning(text, room), end(text, room)
		if !utf8.ValidString(got) || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
			t.Errorf("%q and %q of %q", head, tail, text)
		}
		if more == 0 && head == text && got != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}
