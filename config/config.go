// Package config loads settings: defaults, then a YAML file, then the
// environment. It knows no setting itself. Each package owns a section, a plain
// struct, and the program puts the sections together:
//
//	type Settings struct {
//		Every time.Duration `yaml:"every" default:"5m" min:"1s" doc:"How often to look."`
//		Key   config.Secret `yaml:"key" doc:"What to look with."`
//	}
//
// The yaml tag names the key (",inline" takes an embedded section apart), doc
// explains it. default and min are written as a person would; oneof lists the
// words that are allowed; is:"url", is:"size" (512MiB) and is:"usd" say more
// than the type. A map of structs is a section whose keys the operator chooses,
// and a map of single values is one that fits into one variable, as
// NAME=VALUE,OTHER NAME=VALUE.
//
// Loading is strict: what is not known is refused, with the name that was
// probably meant. Every key can be set by a variable, SHIP_<SECTION>_<KEY>, and
// every secret by a file, <key>_file or SHIP_…_FILE. All problems are reported
// at once.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
)

// Validator is a section with rules of its own. Validate returns one error or
// several that are joined, made with Invalid. Sections in which nothing was set
// are not asked, except the outermost.
type Validator interface{ Validate() error }

// Load fills target, a pointer to a struct, from the file at path, if path is
// not empty, and from environ. The error joins all problems.
func Load(path string, environ []string, target any) error {
	if path == "" {
		return Decode(Document{}, environ, target)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("settings: there is no file %s", path)
	}
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	return Decode(Document{Name: path, Text: text}, environ, target)
}

// Document is a settings file. Paths in it are relative to where it lies.
type Document struct {
	Name string
	Text []byte
}

// Decode fills target, a pointer to a struct, from a document and from environ.
// Values that are there already come before the defaults.
func Decode(doc Document, environ []string, target any) error {
	root, err := rootOf(target)
	if err != nil {
		return err
	}
	var ps problems
	(&document{name: doc.Name, problems: &ps}).read(doc.Text, root)
	newEnvironment(environ, &ps).read(root)
	root.settle()
	root.validate(&ps)
	return ps.err()
}

func rootOf(target any) (*field, error) {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("settings: %T is not a pointer to a struct", target)
	}
	return section("", "", v.Elem())
}

// validate asks the sections, the innermost first.
func (f *field) validate(ps *problems) {
	if f.path != "" && !f.given() {
		return
	}
	for _, c := range f.fields {
		c.validate(ps)
	}
	for _, name := range f.names() {
		f.entries[name].validate(ps)
	}
	if f.fields == nil {
		return
	}
	if v, ok := f.value.Addr().Interface().(Validator); ok {
		ps.addAll(f.path, v.Validate())
	}
}
