package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// asker asks a person, or reads what a script says, a line for each value.
type asker struct {
	lines *bufio.Reader
	out   io.Writer
	// terminal is where somebody types; nil for a script.
	terminal *os.File
}

func newAsker(in io.Reader, out io.Writer) *asker {
	return &asker{lines: bufio.NewReader(in), out: out, terminal: terminalOf(in)}
}

// ask returns the next line. What is typed for a secret is not shown.
func (a *asker) ask(ctx context.Context, what string, secret bool) (string, error) {
	if a.terminal != nil {
		fmt.Fprintf(a.out, "%s: ", what)
	}
	if a.terminal != nil && secret {
		show, err := hideTyping(a.terminal)
		if err != nil {
			return "", fmt.Errorf("this terminal would show the secret, so give it as a file (see --help): %w", err)
		}
		defer func() { show(); fmt.Fprintln(a.out) }()
	}
	type typed struct {
		line string
		err  error
	}
	answer := make(chan typed, 1)
	go func() { // nothing ends a read of a terminal but a line, or the program's end
		line, err := a.lines.ReadString('\n')
		answer <- typed{strings.TrimSpace(line), err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case t := <-answer:
		if t.line == "" {
			return "", fmt.Errorf("the %s is missing", strings.ToLower(what[:1])+what[1:])
		}
		return t.line, nil
	}
}

// givenSecret is a secret that somebody put into a file or into the environment.
func givenSecret(environ []string, file, name string) (string, error) {
	file = cmp.Or(file, variable(environ, name+"_FILE"))
	if file == "" {
		return strings.TrimSpace(variable(environ, name)), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// fileIfThere is a path, or nothing if no file is there.
func fileIfThere(path string) string {
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// without is an environment without the values of a section that are only on
// their way into the settings, and would be half a section there.
func without(environ []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool { return strings.HasPrefix(pair, prefix) })
}
