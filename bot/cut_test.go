package bot

import "testing"

func TestPrefix(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "abc": "abc", "abcd": "abc", "aé": "aé", "abé": "ab", "日本": "日"} {
		if got := Prefix(in, 3); got != want {
			t.Errorf("Prefix(%q) is %q, want %q", in, got, want)
		}
	}
}
