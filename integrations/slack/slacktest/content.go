package slacktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
)

// Limits of what may be posted, in characters.
const (
	// maxText: Slack promises 4,000, cuts off what follows 40,000, and has been
	// seen to split above 4,040. Assumed: more than is promised is refused.
	maxText     = 4000
	maxMarkdown = 12_000
	maxBlocks   = 50
	// maxBlocksText: messages of some 13,200 were refused. Assumed: it is the
	// blocks' JSON that counts.
	maxBlocksText = 13_000
	maxMetadata   = 8000
)

// length counts characters as Slack's clients do. Assumed: those outside of
// the basic plane count twice.
func length(text string) int { return len(utf16.Encode([]rune(text))) }

// readContent takes the content of a message from the arguments.
func (s *Server) readContent(in args) (content, error) {
	said, err := s.readText(in)
	if err != nil {
		return content{}, err
	}
	if raw := in.get("blocks"); raw != "" {
		if length(raw) > maxBlocksText {
			return content{}, refuse("msg_blocks_too_long")
		}
		if said.blocks, err = s.readBlocks(json.RawMessage(raw), maxBlocks); err != nil {
			return content{}, err
		}
	}
	if in.given("attachments") {
		s.Note("attachments are not known here")
	}
	if said.text == "" && len(said.blocks) == 0 {
		return content{}, refuse("no_text")
	}
	said.metadata, err = readMetadata(in.get("metadata"))
	return said, err
}

func (s *Server) readText(in args) (content, error) {
	text, markdown := in.get("text"), in.get("markdown_text")
	switch {
	case markdown != "" && (text != "" || in.get("blocks") != ""):
		return content{}, refuse("markdown_text_conflict")
	case length(text) > maxText || length(markdown) > maxMarkdown:
		return content{}, refuse("msg_too_long")
	case markdown != "":
		return content{text: markdown, markdown: true}, nil
	}
	return content{text: text}, nil
}

// readBlocks takes blocks apart, checks them, and names those that have no id.
func (s *Server) readBlocks(raw json.RawMessage, most int) ([]object, error) {
	var blocks []object
	if json.Unmarshal(raw, &blocks) != nil {
		return nil, refuse("invalid_blocks_format")
	}
	problems := checkBlocks(blocks, most)
	if v := s.opts.Validator; v != nil && len(problems) == 0 {
		if err := v.Blocks(raw); err != nil {
			s.Note("blocks: %v", err)
			problems = append(problems, err.Error())
		}
	}
	if len(problems) > 0 {
		return nil, problem{code: "invalid_blocks", messages: problems}
	}
	for _, b := range blocks {
		nameBlock(b)
	}
	return blocks, nil
}

// readMetadata takes what is attached to a message for programs only.
func readMetadata(text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	var m struct {
		EventType    string         `json:"event_type"`
		EventPayload map[string]any `json:"event_payload"`
	}
	switch {
	case json.Unmarshal([]byte(text), &m) != nil:
		return nil, refuse("invalid_metadata_format")
	case m.EventType == "" || m.EventPayload == nil:
		return nil, refuse("invalid_metadata_schema")
	case len(text) > maxMetadata:
		return nil, refuse("metadata_too_large")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return nil, fmt.Errorf("compact metadata: %w", err)
	}
	return compact.Bytes(), nil
}

// nameBlock gives ids to a block and its elements that have none.
func nameBlock(b object) {
	if str(b, "block_id") == "" {
		b["block_id"] = random(3)
	}
	for _, e := range interactive(b) {
		if str(e, "action_id") == "" {
			e["action_id"] = random(3)
		}
	}
}

// interactive lists the elements of a block that people can use.
func interactive(b object) []object {
	var out []object
	for _, e := range append(list(b, "elements"), child(b, "accessory"), child(b, "element")) {
		if _, known := elementCheck(str(e, "type")); known && str(e, "type") != "image" {
			out = append(out, e)
		}
	}
	return out
}

// str is a text field of an object; empty: there is none.
func str(o object, key string) string {
	text, _ := o[key].(string)
	return text
}

// child is an object in an object, or nil.
func child(o object, key string) object {
	inner, _ := o[key].(object)
	return inner
}

// list is a list of objects in an object.
func list(o object, key string) []object {
	all, _ := o[key].([]any)
	var out []object
	for _, item := range all {
		if inner, ok := item.(object); ok {
			out = append(out, inner)
		}
	}
	return out
}
