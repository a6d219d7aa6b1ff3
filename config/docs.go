package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Key describes one setting for people.
type Key struct {
	// Path in the file, and the variable that sets it; <name> stands for what
	// the operator chooses. Env is empty for what only the file can set.
	Path, Env string
	// Type in a few words, Default as it would be written, Doc from the tag.
	Type, Default, Doc string
	// Secret: there is Path_file and Env_FILE as well.
	Secret bool
}

// Keys lists all settings of target, a pointer to a struct, in its order.
func Keys(target any) ([]Key, error) {
	root, err := rootOf(target)
	if err != nil {
		return nil, err
	}
	return root.describe(true)
}

// chosen stands in a path for a name that the operator chooses.
const chosen = "<name>"

// describe lists what is below a field. named: variables reach it.
func (f *field) describe(named bool) ([]Key, error) {
	switch {
	case f.table:
		e, err := (&field{value: reflect.New(f.value.Type()).Elem(), path: f.path, entries: map[string]*field{}}).entry(chosen)
		if err != nil {
			return nil, err
		}
		// A table in a table has no variables of its own.
		named = named && !strings.Contains(f.path, chosen)
		if f.flat {
			return []Key{f.describeFlat(e, named)}, nil
		}
		return e.describe(named)
	case f.fields == nil:
		return []Key{f.describeLeaf(named)}, nil
	}
	var keys []Key
	for _, c := range f.fields {
		below, err := c.describe(named)
		if err != nil {
			return nil, err
		}
		keys = append(keys, below...)
	}
	return keys, nil
}

func (f *field) describeLeaf(named bool) Key {
	k := Key{Path: f.path, Type: f.typeName(), Default: f.fallback, Doc: f.doc, Secret: f.secret}
	if named {
		k.Env = strings.ReplaceAll(envName(strings.ReplaceAll(f.path, chosen, "0")), "_0_", "_<NAME>_")
	}
	if len(f.oneOf) > 0 {
		k.Type = strings.Join(f.oneOf, " or ")
	}
	return k
}

// describeFlat describes the entries of a flat table, which share a variable.
func (f *field) describeFlat(entry *field, named bool) Key {
	k := entry.describeLeaf(false)
	k.Doc, k.Type, k.Secret = f.doc, k.Type+" by name", false
	if named {
		k.Env = f.env()
	}
	return k
}

// Table renders keys as a Markdown table.
func Table(keys []Key) string {
	var b strings.Builder
	b.WriteString("| key | variable | value | default | what it is |\n|---|---|---|---|---|\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Path, ticked(k.Env), k.Type, ticked(k.Default), k.Doc)
	}
	return b.String()
}

func ticked(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// Example renders keys as a settings file in which everything is commented
// out.
func Example(keys []Key) string {
	var b strings.Builder
	var open []string
	for _, k := range keys {
		path := strings.Split(k.Path, ".")
		open = sections(&b, open, path[:len(path)-1])
		indent := strings.Repeat("  ", len(open))
		if k.Doc != "" {
			fmt.Fprintf(&b, "# %s# %s\n", indent, k.Doc)
		}
		fmt.Fprintf(&b, "# %s%s: %s\n", indent, path[len(path)-1], k.Default)
	}
	return b.String()
}

// sections closes and opens sections from those that are open to those that
// are wanted.
func sections(b *strings.Builder, open, want []string) []string {
	same := 0
	for same < len(open) && same < len(want) && open[same] == want[same] {
		same++
	}
	for i := same; i < len(want); i++ {
		fmt.Fprintf(b, "# %s%s:\n", strings.Repeat("  ", i), want[i])
	}
	return want
}
