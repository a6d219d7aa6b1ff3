package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// maxDocument bounds a settings file, in bytes.
const maxDocument = 1 << 20

// document is a settings file on its way into the fields.
type document struct {
	name     string
	problems *problems
}

// read parses the file and sets what it says.
func (d *document) read(text []byte, root *field) {
	if len(text) > maxDocument {
		d.problems.add(&Problem{Where: d.name, What: "is larger than 1 MiB", Remedy: "that cannot be the settings"})
		return
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var n yaml.Node
	switch err := dec.Decode(&n); {
	case errors.Is(err, io.EOF):
		return // nothing in it but comments
	case err != nil:
		d.problems.add(&Problem{Where: d.name, What: "is not YAML: " + err.Error()})
		return
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		d.problems.add(&Problem{Where: d.name, What: "holds more than one document", Remedy: "leave out what comes after ---"})
		return
	}
	d.set(n.Content[0], root)
}

// set gives a field, or all in a section, the value of a node.
func (d *document) set(n *yaml.Node, f *field) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.wrong(n, f.path, "is an alias", "write the value out")
	case n.Tag == "!!null":
		// "key:" with nothing behind it says nothing.
	case f.table || f.fields != nil:
		d.mapping(n, f)
	default:
		d.leaf(n, f)
	}
}

func (d *document) wrong(n *yaml.Node, key, what, remedy string) {
	d.problems.add(&Problem{Where: d.at(n), Key: key, What: what, Remedy: remedy})
}

func (d *document) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", d.name, n.Line) }

func (d *document) mapping(n *yaml.Node, f *field) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, f.path, "is not a section", "write its keys below it, set in by two spaces")
		return
	}
	there := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		there[n.Content[i].Value]++
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Value == "":
			d.wrong(key, f.path, "has a key that is not a word", "")
		case there[key.Value] > 1:
			d.wrong(key, join(f.path, key.Value), "is there twice", "leave one out")
		case f.table:
			d.tableEntry(key, value, f)
		default:
			d.member(key, value, f, there)
		}
	}
}

func (d *document) tableEntry(key, value *yaml.Node, f *field) {
	if f.flat && value.Tag == "!!null" {
		return // it says nothing
	}
	e, err := f.entry(key.Value)
	if err != nil {
		d.wrong(key, f.path, err.Error(), "")
		return
	}
	d.set(value, e)
}

// member sets one field of a section, by its own key or by that of its file.
func (d *document) member(key, value *yaml.Node, f *field, there map[string]int) {
	if c := f.child(key.Value); c != nil {
		d.set(value, c)
		return
	}
	for _, c := range f.fields {
		if !c.secret || key.Value != c.key+"_file" {
			continue
		}
		if there[c.key] > 0 {
			d.wrong(key, c.path, "is set here and by "+c.key+"_file", "leave one out")
			return
		}
		d.file(value, c)
		return
	}
	d.problems.add(unknown(d.at(key), join(f.path, key.Value), key.Value, f.keys()))
}

func (d *document) file(n *yaml.Node, f *field) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.wrong(n, f.path+"_file", "is not a path", "write the path of a file that holds nothing else")
		return
	}
	path := n.Value
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(d.name), path)
	}
	if p := f.setFromFile(path); p != nil {
		p.Where, p.Key = d.at(n), f.path+"_file"
		d.problems.add(p)
	}
}

func (d *document) leaf(n *yaml.Node, f *field) {
	texts, list := []string{n.Value}, n.Kind == yaml.SequenceNode
	if list {
		texts = texts[:0]
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode || c.Tag == "!!null" {
				d.wrong(c, f.path, "has an entry that is not a single value", "write "+f.article())
				return
			}
			texts = append(texts, c.Value)
		}
	}
	if n.Kind == yaml.MappingNode {
		d.wrong(n, f.path, "is not a section", "write "+f.article())
		return
	}
	f.touched = true
	if p := f.set(texts, list); p != nil {
		p.Where, p.Key = d.at(n), f.path
		d.problems.add(p)
	}
}
