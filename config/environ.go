package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// environment is the SHIP_ variables on their way into the fields.
type environment struct {
	vars     map[string]string
	problems *problems
}

// newEnvironment keeps the variables that may be settings. An empty one is one
// that is not set: that is how compose files leave something out.
func newEnvironment(environ []string, ps *problems) *environment {
	e := &environment{vars: map[string]string{}, problems: ps}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "SHIP_") && strings.TrimSpace(value) != "" && !foreign(name, value) {
			e.vars[name] = value
		}
	}
	return e
}

// service are the variables that Kubernetes gives every container for a
// service that happens to be called ship or ship-redis.
var service = regexp.MustCompile(`_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$`)

// foreign variables are not settings.
func foreign(name, value string) bool {
	return name == "SHIP_CONFIG" || strings.HasPrefix(name, "SHIP_TEST_") || service.MatchString(name) ||
		strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

// read sets what the variables say, and refuses those that look like settings
// and are none.
func (e *environment) read(root *field) {
	e.section(root)
	known := root.variables()
	for _, name := range slices.Sorted(maps.Keys(e.vars)) {
		near := nearest(name, known)
		flat := ofFlat(name, root)
		switch {
		case flat != nil:
			e.problems.add(&Problem{Where: name, What: "there is no such setting", Remedy: "write all entries into " + flat.env() + ", like " + pairsLike})
		case ofSection(name, root):
			e.problems.add(unknown(name, "", name, known))
		case near != "" && distance(name, near) <= 2:
			e.problems.add(unknown(name, "", name, known))
		}
	}
}

// ofSection: the name begins like those of a section.
func ofSection(name string, root *field) bool {
	for _, f := range root.fields {
		if (f.fields != nil || f.table) && strings.HasPrefix(name, f.env()+"_") {
			return true
		}
	}
	return false
}

// ofFlat finds the flat table that a variable seems to name an entry of. There
// are no such variables: a name would have to be guessed from what is left of it
// in capitals and underscores.
func ofFlat(name string, f *field) *field {
	for _, c := range f.fields {
		if c.flat && strings.HasPrefix(name, c.env()+"_") {
			return c
		}
		if found := ofFlat(name, c); found != nil {
			return found
		}
	}
	return nil
}

func (e *environment) section(f *field) {
	for _, c := range f.fields {
		switch {
		case c.flat:
			e.whole(c)
		case c.table:
			e.whole(c)
			e.table(c)
			e.section(entries(c))
		case c.fields != nil:
			e.section(c)
		default:
			e.leaf(c)
		}
	}
}

// entries are the entries of a table as if it were a section.
func entries(table *field) *field {
	f := &field{}
	for _, name := range table.names() {
		f.fields = append(f.fields, table.entries[name])
	}
	return f
}

// take returns a variable, which is then done with.
func (e *environment) take(name string) (value string, ok bool) {
	value, ok = e.vars[name]
	delete(e.vars, name)
	return value, ok
}

func (e *environment) leaf(f *field) {
	name := f.env()
	value, ok := e.take(name)
	if f.secret {
		path, fromFile := e.take(name + "_FILE")
		switch {
		case ok && fromFile:
			e.problems.add(&Problem{Where: name, Key: f.path, What: "is set here and by " + name + "_FILE", Remedy: "unset one"})
			return
		case fromFile:
			e.report(name+"_FILE", f, f.setFromFile(path))
			return
		}
	}
	if ok {
		f.touched = true
		e.report(name, f, f.set([]string{value}, false))
	}
}

func (e *environment) report(name string, f *field, p *Problem) {
	if p != nil {
		p.Where, p.Key = name, f.path
		e.problems.add(p)
	}
}

// whole reads a table that is given in one variable, as YAML. A flat one may be
// written as pairs too, and takes the place of the file's: it is one value.
func (e *environment) whole(f *field) {
	name := f.env()
	text, ok := e.take(name)
	if !ok {
		return
	}
	if f.flat {
		f.clear()
	}
	if f.flat && !strings.HasPrefix(strings.TrimSpace(text), "{") {
		e.report(name, f, e.pairs(f, text))
		return
	}
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil || len(n.Content) == 0 {
		e.problems.add(&Problem{Where: name, Key: f.path, What: "is not YAML", Remedy: "write it as in the file, for example in one line with { }"})
		return
	}
	d := &document{name: name, problems: e.problems}
	d.set(n.Content[0], f)
}

// pairs sets the entries of a flat table.
func (e *environment) pairs(f *field, text string) *Problem {
	list, problem := readPairs(text)
	if problem != nil {
		return problem
	}
	for _, p := range list {
		c, err := f.entry(p.name)
		if err != nil {
			return &Problem{What: err.Error()}
		}
		c.touched = true
		e.report(f.env(), c, c.set([]string{p.value}, false))
	}
	return nil
}

// table makes the entries that variables name: SHIP_MODELS_OPENAI_API_KEY is of
// the entry openai, unless the file calls one so in another way.
func (e *environment) table(f *field) {
	template, err := (&field{value: f.value, path: f.path, entries: map[string]*field{}}).entry("x")
	if err != nil || template.fields == nil {
		return
	}
	known := map[string]bool{}
	for _, name := range f.names() {
		known[envName(name)] = true
	}
	for variable := range e.vars {
		name := entryOf(variable, f, template)
		if name == "" || known[envName(name)] {
			continue
		}
		known[envName(name)] = true
		_, _ = f.entry(name) // the template was made in the same way
	}
}

// entryOf is the name of the entry that a variable is about, in small letters;
// empty if it is about none.
func entryOf(variable string, table, template *field) string {
	rest, ok := strings.CutPrefix(variable, table.env()+"_")
	if !ok {
		return ""
	}
	for _, c := range template.fields {
		if c.table || c.fields != nil {
			continue
		}
		suffix := strings.TrimPrefix(envName(c.key), "SHIP")
		for _, s := range []string{suffix, suffix + "_FILE"} {
			if name, ok := strings.CutSuffix(rest, s); ok && name != "" {
				return strings.ToLower(name)
			}
		}
	}
	return ""
}

// variables are the names of all that can be set.
func (f *field) variables() []string {
	var names []string
	for _, c := range f.fields {
		switch {
		case c.flat:
			names = append(names, c.env())
		case c.table:
			names = append(names, c.env())
			names = append(names, entries(c).variables()...)
		case c.fields != nil:
			names = append(names, c.variables()...)
		default:
			names = append(names, c.env())
			if c.secret {
				names = append(names, c.env()+"_FILE")
			}
		}
	}
	return names
}

// maxSecret bounds a file that holds a secret, in bytes.
const maxSecret = 64 << 10

// setFromFile gives a secret the content of a file, without the white space
// around it.
func (f *field) setFromFile(path string) *Problem {
	text, err := readSecret(path)
	if err != nil {
		return &Problem{What: "cannot be read: " + err.Error(), Remedy: "check the path and who may read it"}
	}
	if text == "" {
		return &Problem{What: fmt.Sprintf("%s is empty", path), Remedy: "put the secret in there"}
	}
	f.touched = true
	return f.set([]string{text}, false)
}

func readSecret(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	switch {
	case err != nil:
		return "", err
	case len(b) > maxSecret:
		return "", fmt.Errorf("%s is larger than 64 KiB", path)
	}
	return strings.TrimSpace(string(b)), nil
}
