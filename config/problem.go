package config

import (
	"errors"
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with the settings, and what to do. It
// never holds the value of a secret.
type Problem struct {
	// Where it was set: "ship.yaml:12" or the name of a variable. Empty when it
	// was not set at all.
	Where string
	// Key is the setting, such as "sandbox.max".
	Key string
	// What is wrong, and the Remedy.
	What, Remedy string
}

// Invalid is a Problem for the Validate method of a section. key is relative
// to the section.
func Invalid(key, what, remedy string) error {
	return &Problem{Key: key, What: what, Remedy: remedy}
}

func (p *Problem) Error() string {
	var b strings.Builder
	for _, s := range []string{p.Where, p.Key} {
		if s != "" {
			b.WriteString(s + ": ")
		}
	}
	b.WriteString(p.What)
	if p.Remedy != "" {
		b.WriteString("; " + p.Remedy)
	}
	return b.String()
}

// problems collects what is wrong, once for each key.
type problems struct {
	list []error
	keys map[string]bool
}

func (ps *problems) add(p *Problem) {
	if ps.keys == nil {
		ps.keys = map[string]bool{}
	}
	if p.Key != "" && ps.keys[p.Key] {
		return
	}
	ps.keys[p.Key] = true
	ps.list = append(ps.list, p)
}

// addAll takes the errors of a section's Validate, joined or not.
func (ps *problems) addAll(section string, err error) {
	var p *Problem
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range list.Unwrap() {
			ps.addAll(section, e)
		}
	} else if errors.As(err, &p) {
		ps.add(&Problem{Where: p.Where, Key: join(section, p.Key), What: p.What, Remedy: p.Remedy})
	} else if err != nil {
		ps.list = append(ps.list, err)
	}
}

func (ps *problems) err() error { return errors.Join(ps.list...) }

func join(section, key string) string {
	switch {
	case section == "":
		return key
	case key == "":
		return section
	}
	return section + "." + key
}

// unknown is the Problem of a name that is none of the known ones.
func unknown(where, key, name string, known []string) *Problem {
	p := &Problem{Where: where, Key: key, What: "there is no such setting"}
	if near := nearest(name, known); near != "" {
		p.Remedy = fmt.Sprintf("did you mean %s?", near)
	} else if len(known) > 0 && len(known) <= 12 {
		p.Remedy = "there are " + strings.Join(known, ", ")
	}
	return p
}

// nearest returns the known name that differs least, if it is near enough to
// be a slip.
func nearest(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to be changed, added, left out or swapped with
// their neighbour to come from a to b.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			rows[i][j] = cheapest(rows, a, b, i, j)
		}
	}
	return rows[len(a)][len(b)]
}

func cheapest(rows [][]int, a, b string, i, j int) int {
	change := rows[i-1][j-1]
	if a[i-1] != b[j-1] {
		change++
	}
	d := min(change, rows[i-1][j]+1, rows[i][j-1]+1)
	if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
		d = min(d, rows[i-2][j-2]+1)
	}
	return d
}
