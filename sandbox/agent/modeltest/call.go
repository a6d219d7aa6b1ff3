package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Call asks for a tool. The names and arguments are those of OpenCode 1.18;
// what the agent's own schema requires beyond them is filled in when the call
// is made.
type Call struct {
	Tool string
	Args map[string]any

	id string
}

// Bash runs a shell command.
func Bash(command string) Call {
	return Call{Tool: "bash", Args: map[string]any{"command": command}}
}

// Write writes a whole file. The path is absolute, or relative to the agent's
// folder.
func Write(path, content string) Call {
	return Call{Tool: "write", Args: map[string]any{"filePath": path, "content": content}}
}

// Read reads a file. OpenCode wants a file read before it is changed.
func Read(path string) Call {
	return Call{Tool: "read", Args: map[string]any{"filePath": path}}
}

// Edit replaces one occurrence of before in a file.
func Edit(path, before, after string) Call {
	return Call{Tool: "edit", Args: map[string]any{
		"filePath": path, "oldString": before, "newString": after,
	}}
}

// Todo is one entry for Todos. Status is pending, in_progress, completed or
// cancelled.
type Todo struct {
	Text   string
	Status string
}

// Todos replaces the agent's list.
func Todos(list ...Todo) Call {
	entries := make([]any, 0, len(list))
	for i, t := range list {
		entries = append(entries, map[string]any{
			"id": fmt.Sprint(i + 1), "content": t.Text, "status": t.Status, "priority": "medium",
		})
	}
	return Call{Tool: "todowrite", Args: map[string]any{"todos": entries}}
}

// fit adds the arguments that the tool requires and the script did not give.
func (c Call) fit(tool Tool) Call {
	args := make(map[string]any, len(c.Args))
	for k, v := range c.Args {
		args[k] = v
	}
	for _, name := range tool.Required {
		if _, given := args[name]; !given {
			args[name] = filler(tool.Properties[name], c)
		}
	}
	c.Args = args
	return c
}

// filler is a value of the right type; for a text, a description of the call.
func filler(kind string, c Call) any {
	switch kind {
	case "number", "integer":
		return 0
	case "boolean":
		return false
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return strings.TrimSpace(fmt.Sprint("scripted ", c.Tool))
}

func (c Call) arguments() string {
	b, err := json.Marshal(c.Args)
	if err != nil {
		return "{}"
	}
	return string(b)
}
