package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// hostile is what a repository or a comment may hold to command a terminal: as
// escapes, as the single characters that mean the same, and by turning around
// what is read.
const hostile = "a\x1b[2Jb\u009b2Jc\x7fd\u0085e\u202ef\u2066g"

// TestTerminalsAreNotCommanded: whatever an operator's command or the log shows
// of foreign texts, also as JSON, a terminal shows it and does no more.
func TestTerminalsAreNotCommanded(t *testing.T) {
	t.Parallel()
	var plain, log strings.Builder
	r := records{redact: func(s string) string { return s }, out: &plain}
	if err := printJSON(r, map[string]any{hostile: []string{hostile}}); err != nil {
		t.Fatal(err)
	}
	var back map[string][]string
	if err := json.Unmarshal([]byte(plain.String()), &back); err != nil || len(back[hostile]) != 1 || back[hostile][0] != hostile {
		t.Errorf("%q came back as %q, %v", hostile, back, err)
	}
	slog.New(slog.NewJSONHandler(&log, discreetly(nil))).Error("it failed", "err", io.ErrUnexpectedEOF, "said", hostile)
	r.show(hostile)
	for _, out := range []string{plain.String(), log.String()} {
		if at := strings.IndexFunc(out, func(c rune) bool { return c != '\n' && commands(c) }); at >= 0 || !strings.Contains(out, "f") {
			t.Errorf("the terminal is commanded by %q", out)
		}
	}
}
