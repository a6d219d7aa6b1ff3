package bot

import (
	"strings"
	"testing"
	"time"

	"ship/session"
)

// TestAPreviewIsShownWhileItLives: in the comment, in the status and in the
// answer, and never to those of whom it is not known that they may read it.
func TestAPreviewIsShownWhileItLives(t *testing.T) {
	t.Parallel()
	const link = "[Preview](https://preview.example.net/preview/a.b/) until 14:05 UTC at most"
	p := &session.Preview{Port: 3000, URL: "https://preview.example.net/preview/a.b/", Until: time.Date(2026, 11, 20, 14, 5, 6, 0, time.UTC)}
	for _, phase := range []session.Phase{session.PhaseWorking, session.PhasePublishing, session.PhaseEnded} {
		v := at(phase)
		for _, text := range []string{Markdown(v), StatusLine(Talking, v)} {
			if strings.Contains(text, "Preview") {
				t.Errorf("%s, none: %s", phase, text)
			}
		}
		v.Preview = p
		for _, text := range []string{Markdown(v), StatusLine(Talking, v)} {
			if !strings.Contains(text, link) {
				t.Errorf("%s: %s", phase, text)
			}
		}
	}
	s := session.State{Preview: p, Turn: &session.Turn{N: 1, Stage: session.Ended, Outcome: &session.Outcome{Ending: session.Completed, Answer: "Look."}}}
	if text := Answer(s); !strings.Contains(text, link) {
		t.Error(text)
	}
	if text := AnswerElsewhere(s); strings.Contains(text, "preview.example.net") {
		t.Error(text)
	}
}
