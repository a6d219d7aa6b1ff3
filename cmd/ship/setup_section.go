package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"go.yaml.in/yaml/v3"
)

// kept is what became of what a set-up brought along.
type kept struct {
	// secrets are the paths of what was written.
	secrets []string
	// left is what somebody has to add to the settings by hand.
	left string
}

// say tells the person, for a section of the settings.
func (k kept) say(out io.Writer, config, section string) {
	fmt.Fprintln(out, "Only you can read the secrets that were written:")
	for _, path := range k.secrets {
		fmt.Fprintf(out, "  %s\n", path)
	}
	if k.left != "" {
		fmt.Fprintf(out, "\n%s is left as it is. Put this into it:\n\n%s", config, k.left)
		return
	}
	fmt.Fprintf(out, "%s has the section %s.\n", config, section)
}

// newSection is a section of ship.yaml that a set-up brings along.
type newSection struct {
	// config is where the settings are, or will be.
	config string
	name   string
	// publicURL comes along where there is none yet; empty: none is needed.
	publicURL string
	// text is the section in YAML.
	text string
	// same tells whether settings have it already.
	same func(Settings) bool
}

// extend adds the section to the settings, and returns what it may not add: to
// change what somebody wrote is theirs alone. A second time it adds nothing.
func (n newSection) extend() (left string, err error) {
	address, err := n.address()
	if err != nil {
		return "", err
	}
	old, err := os.ReadFile(n.config)
	if errors.Is(err, fs.ErrNotExist) {
		return "", writeWhole(n.config, address+n.text, false)
	}
	if err != nil {
		return "", fmt.Errorf("read the settings: %w", err)
	}
	there, err := topLevel(old)
	switch {
	case err != nil || there == nil: // not what can be added to
		return address + n.text, nil
	case there[n.name] != nil:
		return n.unlike(), nil
	case there["public_url"] == nil:
		n.text = address + n.text
	}
	return n.add(old)
}

func (n newSection) address() (string, error) {
	if n.publicURL == "" {
		return "", nil
	}
	b, err := yaml.Marshal(map[string]string{"public_url": n.publicURL})
	return string(b), err
}

// unlike is the section, unless the one that is there says the same.
func (n newSection) unlike() string {
	if now, err := readSettings(n.config, nil); err == nil && n.same(now) {
		return ""
	}
	return n.text
}

// add appends the section to the file, if that makes settings of it that have
// all the old ones and the new. The file stays whose it is.
func (n newSection) add(old []byte) (left string, err error) {
	text := "\n" + n.text
	if len(old) > 0 && !bytes.HasSuffix(old, []byte("\n")) {
		text = "\n" + text
	}
	whole, err := topLevel(append(bytes.Clone(old), text...))
	if err != nil || whole[n.name] == nil {
		return n.text, nil
	}
	f, err := os.OpenFile(n.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return "", fmt.Errorf("add to the settings: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("add to the settings: %w", err)
	}
	return "", nil
}

// topLevel are the sections of a YAML text; nil when it is no plain list of
// them.
func topLevel(text []byte) (map[string]*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return map[string]*yaml.Node{}, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
		return nil, nil
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		out[root.Content[i].Value] = root.Content[i+1]
	}
	return out, nil
}
