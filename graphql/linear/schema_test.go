package linear_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"ship/graphql/linear"
)

func load(t *testing.T, name, text string) *ast.Schema {
	t.Helper()
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: name, Input: text})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// subset is the schema in this folder.
func subset(t *testing.T) *ast.Schema { return load(t, "schema.graphql", linear.Schema) }

// full is Linear's own schema, which lies beside the repository on some
// machines; elsewhere the test is skipped.
func full(t *testing.T) *ast.Schema {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", "linear-schema.graphql")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("needs Linear's published schema: %v", err)
	}
	return load(t, "linear-schema.graphql", string(text))
}

func operations(t *testing.T, schema *ast.Schema) *ast.QueryDocument {
	t.Helper()
	document, problems := gqlparser.LoadQuery(schema, linear.Operations)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return document
}

func TestOperationsFitTheFullSchema(t *testing.T) {
	t.Parallel()
	document := operations(t, full(t))
	if len(document.Operations) < 20 {
		t.Errorf("only %d operations", len(document.Operations))
	}
	u := usage{}
	u.document(document)
	for field := range u {
		if field.deprecated {
			t.Errorf("%s.%s is deprecated", field.of, field.name)
		}
	}
}

func TestSubsetIsPartOfTheFullSchema(t *testing.T) {
	t.Parallel()
	whole, part := full(t), subset(t)
	for name, definition := range part.Types {
		if definition.BuiltIn {
			continue
		}
		if whole.Types[name] == nil {
			t.Errorf("there is no type %s", name)
			continue
		}
		checkType(t, definition, whole.Types[name])
	}
}

func checkType(t *testing.T, part, whole *ast.Definition) {
	t.Helper()
	if part.Kind != whole.Kind {
		t.Errorf("%s is %s, not %s", part.Name, whole.Kind, part.Kind)
	}
	if diff := cmp.Diff(names(whole), names(part)); diff != "" {
		t.Errorf("%s has other values or members (-full +subset):\n%s", part.Name, diff)
	}
	for _, field := range part.Fields {
		if strings.HasPrefix(field.Name, "__") {
			continue
		}
		checkField(t, part.Name, field, whole.Fields.ForName(field.Name))
	}
	if part.Kind != ast.InputObject {
		return
	}
	for _, field := range whole.Fields {
		if field.Type.NonNull && field.DefaultValue == nil && part.Fields.ForName(field.Name) == nil {
			t.Errorf("%s lacks %s, which must be given", part.Name, field.Name)
		}
	}
}

// names are an enumeration's values or a union's members.
func names(d *ast.Definition) []string {
	out := append([]string{}, d.Types...)
	for _, v := range d.EnumValues {
		out = append(out, v.Name)
	}
	return out
}

func checkField(t *testing.T, of string, part, whole *ast.FieldDefinition) {
	t.Helper()
	if whole == nil {
		t.Errorf("there is no %s.%s", of, part.Name)
		return
	}
	if part.Type.String() != whole.Type.String() {
		t.Errorf("%s.%s is %s, not %s", of, part.Name, whole.Type, part.Type)
	}
	for _, argument := range part.Arguments {
		theirs := whole.Arguments.ForName(argument.Name)
		if theirs == nil || theirs.Type.String() != argument.Type.String() {
			t.Errorf("%s.%s(%s) is not as in the full schema", of, part.Name, argument.Name)
		}
	}
	for _, argument := range whole.Arguments {
		if argument.Type.NonNull && argument.DefaultValue == nil && part.Arguments.ForName(argument.Name) == nil {
			t.Errorf("%s.%s lacks (%s), which must be given", of, part.Name, argument.Name)
		}
	}
}

func TestSubsetHoldsNothingUnused(t *testing.T) {
	t.Parallel()
	schema := subset(t)
	u := usage{}
	u.document(operations(t, schema))
	used := map[string]bool{}
	for field := range u {
		used[field.of+"."+field.name] = true
	}
	for name, definition := range schema.Types {
		if definition.BuiltIn || definition.Kind != ast.Object && definition.Kind != ast.InputObject {
			continue
		}
		for _, field := range definition.Fields {
			if !strings.HasPrefix(field.Name, "__") && !used[name+"."+field.Name] {
				t.Errorf("%s.%s is not used", name, field.Name)
			}
		}
	}
}

// usage is what a document asks for.
type usage map[usedField]bool

type usedField struct {
	of, name   string
	deprecated bool
}

func (u usage) document(d *ast.QueryDocument) {
	for _, operation := range d.Operations {
		u.selections(operation.SelectionSet)
		for _, variable := range operation.VariableDefinitions {
			u.input(variable.Definition)
		}
	}
	for _, fragment := range d.Fragments {
		u.selections(fragment.SelectionSet)
	}
}

func (u usage) selections(set ast.SelectionSet) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			u.add(s.ObjectDefinition.Name, s.Name, s.Definition)
			u.selections(s.SelectionSet)
			for _, argument := range s.Arguments {
				u.value(argument.Value)
			}
		case *ast.InlineFragment:
			u.selections(s.SelectionSet)
		}
	}
}

func (u usage) add(of, name string, definition *ast.FieldDefinition) {
	deprecated := definition != nil && definition.Directives.ForName("deprecated") != nil
	u[usedField{of, name, deprecated}] = true
}

// value is an input that is written out in the document.
func (u usage) value(v *ast.Value) {
	if v.Kind != ast.ObjectValue {
		return
	}
	for _, child := range v.Children {
		u.add(v.Definition.Name, child.Name, v.Definition.Fields.ForName(child.Name))
		u.value(child.Value)
	}
}

// input is an input that comes whole, as a variable.
func (u usage) input(d *ast.Definition) {
	if d == nil || d.Kind != ast.InputObject {
		return
	}
	for _, field := range d.Fields {
		u.add(d.Name, field.Name, field)
	}
}

// TestInputsInVariables: an input object may be a variable only when all its
// fields must be given, so that none of them goes as null.
func TestInputsInVariables(t *testing.T) {
	t.Parallel()
	for _, operation := range operations(t, subset(t)).Operations {
		for _, variable := range operation.VariableDefinitions {
			if variable.Definition.Kind != ast.InputObject {
				continue
			}
			for _, field := range variable.Definition.Fields {
				if !field.Type.NonNull {
					t.Errorf("%s: $%s would carry %s as null", operation.Name, variable.Variable, field.Name)
				}
			}
		}
	}
}
