package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// spillFile is where an agent finds what it is to say: texts that must not
// leave, in a form in which nobody looks for them.
const spillFile = "SPILL"

// disguised writes texts so that only spilled reads them.
func disguised(texts []string) string {
	all := []byte(strings.Join(texts, "\n"))
	for i := range all {
		all[i] = ^all[i]
	}
	return hex.EncodeToString(all)
}

// spilled are the texts in the file, in the agent's folder.
func spilled() []string {
	text, _ := os.ReadFile(spillFile)
	all, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(all) == 0 {
		return []string{"nothing to spill"} // the test sees that it is missing
	}
	for i := range all {
		all[i] = ^all[i]
	}
	return strings.Split(string(all), "\n")
}

// spill is what an agent does that was talked into telling all it knows: it says
// each text in its list, in commands, in what those print, and in errors; also
// where it is cut off by the end of a line. What it says at last is returned.
func spill() (parts []any, said string) {
	var todos []any
	for i, text := range spilled() {
		todos = append(todos, map[string]any{"content": "use " + text, "status": "completed"})
		for _, pad := range []int{0, 100, 190, 290, 480} {
			parts = append(parts, spillingCall(fmt.Sprintf("c%d-%d", i, pad), strings.Repeat("x", pad)+" "+text))
		}
		said += "It is " + text + ", or `" + text + "`.\nTOKEN=" + text + "\n"
	}
	return append(parts, map[string]any{
		"id": "spill", "type": "tool", "tool": "todowrite", "callID": "spill",
		"state": map[string]any{"status": "completed", "input": map[string]any{"todos": todos}},
	}), said
}

func spillingCall(id, text string) any {
	return map[string]any{"id": id, "type": "tool", "tool": "bash", "callID": id, "state": map[string]any{
		"status": "completed", "title": text, "output": "printed " + text,
		"input":    map[string]any{"command": text, "description": text},
		"metadata": map[string]any{"exit": 1, "output": "printed " + text},
	}}
}
