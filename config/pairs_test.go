package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// routes is a section with flat tables.
type routes struct {
	Rules struct {
		Labels map[string]string `yaml:"labels" doc:"Where by label."`
		Prices map[string]int    `yaml:"prices" doc:"How much by name."`
		Keys   map[string]Secret `yaml:"keys" doc:"Keys by name."`
		Deep   map[string]struct {
			Names map[string]string `yaml:"names" doc:"Names by name."`
		} `yaml:"deep"`
	} `yaml:"rules"`
}

func decodeRoutes(text string, environ ...string) (routes, error) {
	var r routes
	err := Decode(Document{Name: "ship.yaml", Text: []byte(text)}, environ, &r)
	return r, err
}

func TestFlatTable(t *testing.T) {
	t.Parallel()
	const file = "rules: {labels: {Mobile App: acme/app, ada@example.com: ada}, prices: {a: 1}}"
	fromFile := map[string]string{"Mobile App": "acme/app", "ada@example.com": "ada"}
	for _, tt := range []struct {
		name, text, env string
		want            map[string]string
	}{
		{"file", file, "", fromFile},
		{"nothing said", "rules: {labels: {a: , b: c}}", "", map[string]string{"b": "c"}},
		{"an empty variable", file, "SHIP_RULES_LABELS= ", fromFile},
		{"one", "", "SHIP_RULES_LABELS=backend=acme/api", map[string]string{"backend": "acme/api"}},
		{"spaces", "", "SHIP_RULES_LABELS= backend = acme/api , Mobile App=acme/app,", map[string]string{"backend": "acme/api", "Mobile App": "acme/app"}},
		{"lines", "", "SHIP_RULES_LABELS=a=b\n  c=d\n", map[string]string{"a": "b", "c": "d"}},
		{"the last =", "", "SHIP_RULES_LABELS=area=api=acme/api", map[string]string{"area=api": "acme/api"}},
		{"the variable counts", file, "SHIP_RULES_LABELS=mobile app=acme/new", map[string]string{"mobile app": "acme/new"}},
		{"YAML", file, `SHIP_RULES_LABELS={"a, b=c": acme/api}`, map[string]string{"a, b=c": "acme/api"}},
		{"nothing as YAML", file, "SHIP_RULES_LABELS={}", map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := decodeRoutes(tt.text, tt.env)
			if err != nil || !cmp.Equal(r.Rules.Labels, tt.want) {
				t.Errorf("%v, %v, want %v", r.Rules.Labels, err, tt.want)
			}
			if tt.text == file && r.Rules.Prices["a"] != 1 {
				t.Errorf("the other table became %v", r.Rules.Prices)
			}
		})
	}
	r, err := decodeRoutes("", "SHIP_RULES_PRICES=a=1,b=2", "SHIP_RULES_KEYS=a=hunter2")
	if err != nil || !cmp.Equal(r.Rules.Prices, map[string]int{"a": 1, "b": 2}) || r.Rules.Keys["a"].Reveal() != "hunter2" {
		t.Errorf("%v, %v", r, err)
	}
}

// TestFlatTableReplaces: what was in the target before is another's as well.
func TestFlatTableReplaces(t *testing.T) {
	t.Parallel()
	before := map[string]string{"old": "acme/old"}
	var r routes
	r.Rules.Labels = before
	if err := Decode(Document{}, []string{"SHIP_RULES_LABELS=new=acme/new"}, &r); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(r.Rules.Labels, map[string]string{"new": "acme/new"}) || !cmp.Equal(before, map[string]string{"old": "acme/old"}) {
		t.Errorf("%v, and before %v", r.Rules.Labels, before)
	}
}

func TestFlatTableProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, env, want string }{
		{"", "SHIP_RULES_LABELS=backend", "SHIP_RULES_LABELS: rules.labels: entry 1 is not a name and a value; write it like NAME=VALUE,OTHER NAME=VALUE"},
		{"", "SHIP_RULES_LABELS=a=b,=c", "entry 2 is not a name and a value"},
		{"", "SHIP_RULES_LABELS=a=b,c=", "entry 2 is not a name and a value"},
		{"", "SHIP_RULES_LABELS=a=b, a =c", `rules.labels: names "a" twice; leave one out`},
		{"", "SHIP_RULES_LABELS=,", "rules.labels: holds no entry"},
		{"", "SHIP_RULES_LABELS={a", "rules.labels: is not YAML"},
		{"", "SHIP_RULES_LABELS={a: [b]}", "rules.labels.a: is a list"},
		{"", "SHIP_RULES_LABELS={a: b, a: c}", "rules.labels.a: is there twice"},
		{"rules: {labels: {a: {b: c}}}", "", "rules.labels.a: is not a section"},
		{"rules: {labels: [a=b]}", "", "rules.labels: is not a section"},
		{"", "SHIP_RULES_PRICES=a=much", `SHIP_RULES_PRICES: rules.prices.a: "much" is not a whole number`},
		{"", "SHIP_RULES_KEYS=hunter2", "rules.keys: entry 1 is not a name and a value"},
		{"", "SHIP_RULES_LABELS_BACKEND=acme/api", "SHIP_RULES_LABELS_BACKEND: there is no such setting; write all entries into SHIP_RULES_LABELS, like NAME=VALUE"},
		{"rules: {labels: {backend: x}}", "SHIP_RULES_LABELS_BACKEND=acme/api", "SHIP_RULES_LABELS_BACKEND: there is no such setting"},
		{"", "SHIP_RULES_LABLES=a=b", "did you mean SHIP_RULES_LABELS?"},
	} {
		t.Run(tt.text+tt.env, func(t *testing.T) {
			t.Parallel()
			_, err := decodeRoutes(tt.text, tt.env)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestFlatTableDocs(t *testing.T) {
	t.Parallel()
	keys, err := Keys(new(routes))
	if err != nil {
		t.Fatal(err)
	}
	table := Table(keys)
	for _, want := range []string{
		"| `rules.labels.<name>` | `SHIP_RULES_LABELS` | text by name |  | Where by label. |",
		"| `rules.prices.<name>` | `SHIP_RULES_PRICES` | whole number by name |  | How much by name. |",
		"| `rules.keys.<name>` | `SHIP_RULES_KEYS` | secret by name |  | Keys by name. |",
		"| `rules.deep.<name>.names.<name>` |  | text by name |  | Names by name. |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %s in\n%s", want, table)
		}
	}
}

// FuzzReadPairs: what is taken is a table, and reads the same when it is written
// anew.
func FuzzReadPairs(f *testing.F) {
	for _, text := range []string{"backend=acme/api,Mobile App=acme/app", "a=b=c", "a=b\na=c", ",", "=", " = ", "a", "\r\na=b", "ada@example.com=ada"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, problem := readPairs(text)
		if (problem == nil) == (len(list) == 0) {
			t.Fatalf("%q: %v and %v", text, list, problem)
		}
		var again []string
		seen := map[string]bool{}
		for _, p := range list {
			if p.name == "" || p.value == "" || seen[p.name] || strings.ContainsAny(p.name+p.value, ",\n") || strings.Contains(p.value, "=") {
				t.Errorf("%q: took %q", text, p)
			}
			seen[p.name] = true
			again = append(again, p.name+"="+p.value)
		}
		if len(list) == 0 {
			return
		}
		if got, problem := readPairs(strings.Join(again, ",")); problem != nil || !cmp.Equal(got, list, cmp.AllowUnexported(pair{})) {
			t.Errorf("%q: %v, %v when written anew", text, got, problem)
		}
	})
}
