package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpful makes every complaint about a command line end with where to read
// how it is written.
func helpful(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		helpful(sub)
	}
	cmd.SetFlagErrorFunc(misused)
	if cmd.HasSubCommands() {
		cmd.Args, cmd.RunE = noSuchCommand, func(c *cobra.Command, _ []string) error { return c.Help() }
		return
	}
	check := cmd.Args
	cmd.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return misused(c, fmt.Errorf("write it as `%s`", c.UseLine()))
		}
		return nil
	}
}

func misused(c *cobra.Command, err error) error {
	return fmt.Errorf("%w; see `%s --help`", err, c.CommandPath())
}

func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("there is no command `%s %s`", c.CommandPath(), args[0])
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w, only %s", err, strings.Join(near, " and "))
	}
	return misused(c, err)
}
