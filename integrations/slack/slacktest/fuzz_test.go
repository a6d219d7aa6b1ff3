package slacktest

import (
	"encoding/json"
	"testing"
)

// FuzzBlocks: whatever is sent as blocks is refused, or can be shown and used.
func FuzzBlocks(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[null]`, `[{"type":"section","text":{"type":"mrkdwn","text":"<@U1> <!date^1^x|y> <a|b>"}}]`,
		`[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"a"}},{"type":"overflow","options":[7]}]}]`,
		`[{"type":"input","label":{"type":"plain_text","text":"a"},"element":{"type":"checkboxes","options":[{"text":{"type":"mrkdwn","text":"a"},"value":"b"}]}}]`,
		`[{"type":"rich_text","elements":[{"type":"rich_text_list","elements":[{"type":"user"}]}]}]`,
		`[{"type":"plan","title":"p","tasks":[{"task_id":"1","title":{"type":"plain_text","text":"t"}}]}]`,
	} {
		f.Add(seed)
	}
	s := prepare(Options{})
	f.Fuzz(func(t *testing.T, text string) {
		blocks, err := s.readBlocks(json.RawMessage(text), maxBlocks)
		if err != nil {
			return
		}
		_ = masked(s.renderedBlocks(blocks))
		_ = mustJSON(s.stateOf(blocks, nil))
		for _, b := range blocks {
			for _, e := range interactive(b) {
				if str(e, "action_id") == "" || str(b, "block_id") == "" {
					t.Errorf("%s has no name", text)
				}
				_, _ = s.fill(e, nil) // the answer does not fit
			}
		}
	})
}
