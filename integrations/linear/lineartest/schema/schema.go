// Package schema checks what goes through the stand-in for Linear against
// Linear's own schema: requests, answers and webhooks.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
)

// Validator is a lineartest.Validator. It may be used by many servers at once.
type Validator struct{ schema *ast.Schema }

// Load reads a schema in GraphQL's own language.
func Load(path string) (*Validator, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load schema: %w", err)
	}
	return Parse(path, string(text))
}

// Parse takes the schema as text.
func Parse(name, text string) (*Validator, error) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: name, Input: text})
	if err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	return &Validator{schema: schema}, nil
}

// Request checks a document, that it has the operation, and its variables.
func (v *Validator) Request(document, operation string, variables json.RawMessage) error {
	o, err := v.operation(document, operation)
	if err != nil {
		return err
	}
	given := map[string]any{}
	if len(variables) > 0 {
		if err := json.Unmarshal(variables, &given); err != nil {
			return fmt.Errorf("variables: %w", err)
		}
	}
	for name := range given {
		if o.VariableDefinitions.ForName(name) == nil {
			return fmt.Errorf("there is no variable $%s", name)
		}
	}
	_, err = validator.VariableValues(v.schema, o, given)
	return err
}

func (v *Validator) operation(document, name string) (*ast.OperationDefinition, error) {
	parsed, problems := gqlparser.LoadQuery(v.schema, document)
	if len(problems) > 0 {
		return nil, problems
	}
	o := parsed.Operations.ForName(name)
	if o == nil {
		return nil, fmt.Errorf("there is no operation %q", name)
	}
	return o, nil
}

// Response checks the data of an answer: that it has just what was asked for,
// each of its type.
func (v *Validator) Response(document, operation string, data json.RawMessage) error {
	o, err := v.operation(document, operation)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	root := v.schema.Query
	if o.Operation == ast.Mutation {
		root = v.schema.Mutation
	}
	return v.object(path{"data"}, root, o.SelectionSet, value)
}

// path is where in an answer we are.
type path []string

func (p path) at(name string) path { return append(p[:len(p):len(p)], name) }

func (p path) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %s", strings.Join(p, "."), fmt.Sprintf(format, args...))
}

// value checks one value. Without a selection all fields of an object count.
func (v *Validator) value(p path, t *ast.Type, set ast.SelectionSet, value any) error {
	if value == nil {
		if t.NonNull {
			return p.errorf("is null")
		}
		return nil
	}
	if t.Elem != nil {
		return v.list(p, t.Elem, set, value)
	}
	definition := v.schema.Types[t.NamedType]
	switch definition.Kind {
	case ast.Scalar:
		return scalar(p, definition.Name, value)
	case ast.Enum:
		if name, ok := value.(string); !ok || definition.EnumValues.ForName(name) == nil {
			return p.errorf("%v is not one of %s", value, definition.Name)
		}
		return nil
	}
	if set == nil {
		return v.whole(p, definition, value)
	}
	return v.object(p, definition, set, value)
}

func (v *Validator) list(p path, of *ast.Type, set ast.SelectionSet, value any) error {
	list, ok := value.([]any)
	if !ok {
		return p.errorf("is no list")
	}
	for i, item := range list {
		if err := v.value(p.at(fmt.Sprint(i)), of, set, item); err != nil {
			return err
		}
	}
	return nil
}

func scalar(p path, name string, value any) error {
	ok := true
	switch name {
	case "String", "ID":
		_, ok = value.(string)
	case "Int", "Float":
		_, ok = value.(float64)
	case "Boolean":
		_, ok = value.(bool)
	case "JSONObject":
		_, ok = value.(map[string]any)
	case "DateTime":
		text, _ := value.(string)
		at, err := time.Parse(time.RFC3339Nano, text)
		ok = err == nil && !at.IsZero()
	}
	if !ok {
		return p.errorf("%v is no %s", value, name)
	}
	return nil
}

// object checks an object against what was selected.
func (v *Validator) object(p path, definition *ast.Definition, set ast.SelectionSet, value any) error {
	got, ok := value.(map[string]any)
	if !ok {
		return p.errorf("is no object")
	}
	if definition.IsAbstractType() {
		name, _ := got["__typename"].(string)
		if definition = v.schema.Types[name]; definition == nil {
			return p.errorf("__typename %q is not known", name)
		}
	}
	wanted := map[string]*ast.Field{}
	v.collect(wanted, definition, set)
	for key, field := range wanted {
		item, there := got[key]
		if !there {
			return p.at(key).errorf("is missing")
		}
		if field.Name == "__typename" {
			continue
		}
		if err := v.value(p.at(key), field.Definition.Type, field.SelectionSet, item); err != nil {
			return err
		}
	}
	for key := range got {
		if wanted[key] == nil {
			return p.at(key).errorf("was not asked for")
		}
	}
	return nil
}

// collect gathers the fields of a selection that hold for a type.
func (v *Validator) collect(into map[string]*ast.Field, definition *ast.Definition, set ast.SelectionSet) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			into[s.Alias] = s
		case *ast.FragmentSpread:
			if v.holds(s.Definition.TypeCondition, definition) {
				v.collect(into, definition, s.Definition.SelectionSet)
			}
		case *ast.InlineFragment:
			if v.holds(s.TypeCondition, definition) {
				v.collect(into, definition, s.SelectionSet)
			}
		}
	}
}

func (v *Validator) holds(condition string, definition *ast.Definition) bool {
	if condition == "" || condition == definition.Name {
		return true
	}
	for _, possible := range v.schema.GetPossibleTypes(v.schema.Types[condition]) {
		if possible.Name == definition.Name {
			return true
		}
	}
	return false
}

// Payload checks the body of a webhook, named as in its header Linear-Event.
func (v *Validator) Payload(event string, body []byte) error {
	kind := map[string]string{
		"AgentSessionEvent":   "AgentSessionEventWebhookPayload",
		"AppUserNotification": "AppUserNotificationWebhookPayload",
		"OAuthApp":            "OAuthAppWebhookPayload",
		"PermissionChange":    "AppUserTeamAccessChangedWebhookPayload",
	}[event]
	definition := v.schema.Types[kind]
	if definition == nil {
		return fmt.Errorf("no payload is known for %q", event)
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	return v.whole(path{event}, definition, value)
}

// whole checks an object that nobody selected from: a webhook has all that is
// not null.
func (v *Validator) whole(p path, definition *ast.Definition, value any) error {
	if definition.IsAbstractType() {
		return v.oneOf(p, definition, value)
	}
	got, ok := value.(map[string]any)
	if !ok {
		return p.errorf("is no object")
	}
	for _, field := range definition.Fields {
		if strings.HasPrefix(field.Name, "__") {
			continue
		}
		if err := v.value(p.at(field.Name), field.Type, nil, got[field.Name]); err != nil {
			return err
		}
	}
	for key := range got {
		if definition.Fields.ForName(key) == nil {
			return p.at(key).errorf("is not of %s", definition.Name)
		}
	}
	return nil
}

// oneOf checks a value that fits one of several types and does not say which.
func (v *Validator) oneOf(p path, definition *ast.Definition, value any) error {
	var problems []error
	for _, possible := range v.schema.GetPossibleTypes(definition) {
		err := v.whole(p, possible, value)
		if err == nil {
			return nil
		}
		problems = append(problems, err)
	}
	return fmt.Errorf("is none of %s: %w", definition.Name, errors.Join(problems...))
}

// Operations are the names of those in a document.
func (v *Validator) Operations(document string) ([]string, error) {
	parsed, problems := gqlparser.LoadQuery(v.schema, document)
	if len(problems) > 0 {
		return nil, problems
	}
	var names []string
	for _, o := range parsed.Operations {
		names = append(names, o.Name)
	}
	return names, nil
}
