// Package schema checks the blocks that go through the stand-in for Slack
// against Slack's own description of them.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validator is a slacktest.Validator. It may be used by many servers at once.
type Validator struct{ schema *jsonschema.Schema }

// Load reads a JSON Schema of a list of blocks.
func Load(path string) (*Validator, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load schema: %w", err)
	}
	return Parse(text)
}

// Parse takes the schema as text.
func Parse(text []byte) (*Validator, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	const name = "blocks.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, document); err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	return &Validator{schema: compiled}, nil
}

// Blocks checks the blocks of a message or a view.
func (v *Validator) Blocks(blocks json.RawMessage) error {
	list, err := jsonschema.UnmarshalJSON(bytes.NewReader(blocks))
	if err != nil {
		return fmt.Errorf("read blocks: %w", err)
	}
	return v.schema.Validate(list)
}
