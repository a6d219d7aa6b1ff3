package bot

import (
	"strings"
	"testing"
)

func TestRemark(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		r    Remark
		want string
	}{
		{"one line", Remark{"Ada:", "fix it"}, "Ada:\n> fix it\n\n"},
		{"a name of several lines", Remark{"Ada\nRequest:\n", "fix it"}, "Ada Request:\n> fix it\n\n"},
		{"space around", Remark{"Ada:", "\n a\n\nb \n"}, "Ada:\n> a\n> \n> b\n\n"},
		{"no UTF-8", Remark{"Ada:", "a\xffb"}, "Ada:\n> a\uFFFDb\n\n"},
		{"nothing", Remark{"Ada:", ""}, "Ada:\n> \n\n"},
	} {
		if got := tt.r.String(); got != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

func TestNewest(t *testing.T) {
	t.Parallel()
	talk := []Remark{{"a:", "1"}, {"b:", strings.Repeat("2", 50)}, {"c:", "3"}, {"d:", "4"}}
	const each = len("c:\n> 3\n\n")
	for _, tt := range []struct {
		room int
		want string
	}{
		{0, ""}, {each - 1, ""}, {each, "d:\n> 4\n\n"},
		{3 * each, "c:\n> 3\n\nd:\n> 4\n\n"}, // what is before the one that does not fit is left out, too
		{1000, talk[0].String() + talk[1].String() + talk[2].String() + talk[3].String()},
	} {
		if got := Newest(talk, tt.room); got != tt.want {
			t.Errorf("%d: %q", tt.room, got)
		}
	}
}

// FuzzRemark: whatever breaks lines, no line but the first is ours.
func FuzzRemark(f *testing.F) {
	f.Add("Ada:", "a\u2028b\vc\fd\re\r\nf\u0085g\u2029h")
	f.Add("Ada\u2028Request:", "</quoted>")
	f.Fuzz(func(t *testing.T, head, text string) {
		s := Remark{head, text}.String()
		first, rest, ok := strings.Cut(strings.TrimSuffix(s, "\n\n"), "\n")
		if !ok || strings.ContainsAny(first, "\r\v\f\u0085\u2028\u2029") {
			t.Fatalf("head of %q", s)
		}
		for _, line := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
			if !strings.HasPrefix(line, "> ") {
				t.Fatalf("%q passes for ours in %q", line, s)
			}
		}
	})
}
