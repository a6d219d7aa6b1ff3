package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestOperatingNamesEveryCommand: docs/operating.md has every command that does
// something. How ship is served has documents of its own.
func TestOperatingNamesEveryCommand(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			check(sub)
		}
		if !c.HasSubCommands() && c.Name() != "serve" && !strings.Contains(string(doc), "`"+c.CommandPath()) {
			t.Errorf("docs/operating.md does not name `%s`", c.CommandPath())
		}
	}
	check(newCommand())
}
