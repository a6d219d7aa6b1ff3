package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// field is one setting, or a section of them, bound to where its value goes.
type field struct {
	// key is its own name, path the whole one.
	key, path string
	value     reflect.Value
	doc       string
	// fallback is the default as it would be written.
	fallback string
	secret   bool
	// is says more than the type: url, size or usd.
	is    string
	oneOf []string
	min   string
	// fields of a section; nil for a leaf.
	fields []*field
	// table is a section with names chosen by the operator; entries are those
	// that were named so far. It is flat when each of them is a single value.
	table, flat bool
	entries     map[string]*field
	// touched: the file or the environment set this leaf.
	touched bool
}

// section builds the tree of a struct and fills the defaults in.
func section(key, path string, v reflect.Value) (*field, error) {
	f := &field{key: key, path: path, value: v, fields: []*field{}}
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		if options == "inline" {
			inlined, err := section(key, path, v.Field(i))
			if err != nil {
				return nil, err
			}
			f.fields = append(f.fields, inlined.fields...)
			continue
		}
		if name == "" || name == "-" || !sf.IsExported() {
			continue
		}
		child, err := fieldOf(name, join(path, name), v.Field(i), sf.Tag)
		if err != nil {
			return nil, err
		}
		f.fields = append(f.fields, child)
	}
	return f, nil
}

// fieldOf builds the tree below one struct field, or below one entry of a
// table.
func fieldOf(key, path string, v reflect.Value, tag reflect.StructTag) (*field, error) {
	var f *field
	switch {
	case v.Kind() == reflect.Struct && v.Type() != secretType:
		var err error
		if f, err = section(key, path, v); err != nil {
			return nil, err
		}
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		f = &field{key: key, path: path, value: v, table: true, entries: map[string]*field{}}
		f.flat = leaf(v.Type().Elem()) && v.Type().Elem().Kind() != reflect.Slice
	case leaf(v.Type()):
		f = &field{key: key, path: path, value: v, secret: isSecret(key, v.Type())}
	default:
		return nil, fmt.Errorf("settings: %s is a %s, which cannot be set", path, v.Type())
	}
	f.doc, f.is, f.min = tag.Get("doc"), tag.Get("is"), tag.Get("min")
	f.fallback = tag.Get("default")
	if names := tag.Get("oneof"); names != "" {
		f.oneOf = strings.Fields(names)
	}
	return f, f.setDefault()
}

// leaf reports whether a type is a single setting.
func leaf(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.String || t.Elem() == secretType
	}
	return t == secretType
}

// isSecret goes by the type, and by the name where a section forgot the type.
func isSecret(key string, t reflect.Type) bool {
	if t == secretType || t == secretsType {
		return true
	}
	text := t.Kind() == reflect.String || t.Kind() == reflect.Slice
	for _, word := range []string{"secret", "token", "password", "api_key", "private_key"} {
		if text && strings.HasSuffix(key, word) {
			return true
		}
	}
	return false
}

func (f *field) isList() bool { return f.value.Kind() == reflect.Slice }

func (f *field) setDefault() error {
	if f.fallback == "" || f.table || f.fields != nil || !f.value.IsZero() {
		return nil
	}
	if p := f.set([]string{f.fallback}, false); p != nil {
		p.Key = f.path
		return fmt.Errorf("settings: default: %w", p)
	}
	return nil
}

// entry returns the entry of a table, made if it is new.
func (f *field) entry(name string) (*field, error) {
	if e, ok := f.entries[name]; ok {
		return e, nil
	}
	v := reflect.New(f.value.Type().Elem()).Elem()
	if old := f.value.MapIndex(reflect.ValueOf(name).Convert(f.value.Type().Key())); old.IsValid() {
		v.Set(old)
	}
	e, err := fieldOf(name, join(f.path, name), v, reflect.StructTag(""))
	if err != nil {
		return nil, err
	}
	f.entries[name] = e
	return e, nil
}

// clear takes all entries out of a table.
func (f *field) clear() {
	f.entries = map[string]*field{}
	f.value.Set(reflect.MakeMap(f.value.Type()))
}

// settle puts the entries of tables into their maps, the innermost first.
func (f *field) settle() {
	for _, c := range f.fields {
		c.settle()
	}
	if len(f.entries) == 0 {
		return
	}
	// A new map: the one that was there may be shared with other settings.
	m := reflect.MakeMap(f.value.Type())
	for it := f.value.MapRange(); it.Next(); {
		m.SetMapIndex(it.Key(), it.Value())
	}
	for name, e := range f.entries {
		e.settle()
		m.SetMapIndex(reflect.ValueOf(name).Convert(f.value.Type().Key()), e.value)
	}
	f.value.Set(m)
}

// given reports whether the file or the environment set anything in a field.
func (f *field) given() bool {
	if f.touched || slices.ContainsFunc(f.fields, (*field).given) {
		return true
	}
	for _, e := range f.entries {
		if e.given() {
			return true
		}
	}
	return false
}

// child finds a field of a section by its key.
func (f *field) child(key string) *field {
	for _, c := range f.fields {
		if c.key == key {
			return c
		}
	}
	return nil
}

// keys are the names that may stand in a section.
func (f *field) keys() []string {
	var names []string
	for _, c := range f.fields {
		names = append(names, c.key)
		if c.secret {
			names = append(names, c.key+"_file")
		}
	}
	return names
}

// names are the entries of a table, sorted.
func (f *field) names() []string { return slices.Sorted(maps.Keys(f.entries)) }

// env is the variable that sets the field.
func (f *field) env() string { return envName(f.path) }

// envName is a path as the name of a variable. What cannot stand in one is an
// underscore.
func envName(path string) string {
	return "SHIP_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, path)
}

// article names what is to be written, for people.
func (f *field) article() string {
	switch f.typeName() {
	case "true or false":
		return "true or false"
	case "web address", "amount in USD":
		return "an " + strings.TrimPrefix(f.typeName(), "web ")
	}
	return "a " + f.typeName()
}

// typeName is the kind of value, in the words of the documentation.
func (f *field) typeName() string {
	t := f.value.Type()
	switch {
	case t == secretType, f.secret && t.Kind() == reflect.String:
		return "secret"
	case f.secret:
		return "list of secrets"
	case t == durationType:
		return "duration"
	case f.is == "url":
		return "web address"
	case f.is == "size":
		return "size"
	case f.is == "usd":
		return "amount in USD"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	}
	return "text"
}
