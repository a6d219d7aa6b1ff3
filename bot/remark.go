package bot

import (
	"slices"
	"strings"
)

// Remark is one thing that somebody said, as the agent gets to read it: a line
// of ours, and under it theirs, which is data.
type Remark struct{ Head, Text string }

// lineBreaks are what some program takes for the end of a line.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// String quotes every foreign line, so that none can pass for ours.
func (r Remark) String() string {
	text := strings.TrimSpace(lineBreaks.Replace(strings.ToValidUTF8(r.Text, "\uFFFD")))
	return strings.Join(strings.Fields(r.Head), " ") + "\n> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n\n"
}

// Newest is as many of the newest remarks as fit into room, in bytes, in the
// order in which they were made.
func Newest(talk []Remark, room int) string {
	var kept []string
	for _, r := range slices.Backward(talk) {
		s := r.String()
		if len(s) > room {
			break
		}
		room -= len(s)
		kept = append(kept, s)
	}
	slices.Reverse(kept)
	return strings.Join(kept, "")
}
