package schema_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"ship/integrations/slack/slacktest/schema"
)

const small = `{
	"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/Blocks",
	"definitions": {
		"Blocks": {"type": "array", "items": {"anyOf": [{"$ref": "#/definitions/Divider"}, {"$ref": "#/definitions/Header"}]}},
		"Divider": {"type": "object", "additionalProperties": false, "required": ["type"], "properties": {"type": {"const": "divider"}}},
		"Header": {"type": "object", "required": ["type", "text"], "properties": {"type": {"const": "header"}, "text": {"type": "string"}}}
	}
}`

func TestBlocks(t *testing.T) {
	t.Parallel()
	v, err := schema.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for blocks, want := range map[string]string{
		`[]`: "",
		`[{"type":"divider"},{"type":"header","text":"Hello"}]`: "",
		`[{"type":"header"}]`:               "missing property 'text'",
		`[{"type":"divider","extra":true}]`: "additional properties",
		`{}`:                                "want array",
		`[`:                                 "read blocks: ",
	} {
		err := v.Blocks(json.RawMessage(blocks))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", blocks, err, want)
		}
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	if _, err := schema.Load("no such file"); err == nil || !strings.Contains(err.Error(), "load schema: ") {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"{", `{"type":7}`, `{"$ref":"#/definitions/None"}`} {
		if _, err := schema.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "parse schema: ") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// TestSlacksOwn: the description that Slack gives holds what is known of it.
func TestSlacksOwn(t *testing.T) {
	t.Parallel()
	v, err := schema.Load("../../../../../shared/data/slack-blockkit.schema.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the schema of blocks is not beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	for blocks, good := range map[string]bool{
		`[{"type":"section","text":{"type":"mrkdwn","text":"*hi*"}}]`:                                    true,
		`[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"Stop"}}]}]`: true,
		`[{"type":"actions","elements":[{"type":"button","text":"Stop"}]}]`:                              false,
		`[{"type":"section","txt":{"type":"mrkdwn","text":"hi"}}]`:                                       false,
		`[{"type":"nothing"}]`: false,
	} {
		if err := v.Blocks(json.RawMessage(blocks)); (err == nil) != good {
			t.Errorf("%s: got %v", blocks, err)
		}
	}
}
