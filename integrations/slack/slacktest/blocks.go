package slacktest

import (
	"fmt"
	"slices"
)

// checker gathers what is wrong with blocks, in the words of Slack.
type checker struct {
	problems []string
	markdown int // characters in markdown blocks so far
	ids      map[string]bool
}

func (c *checker) fail(at, format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf("[ERROR] "+format, args...)+" [json-pointer:"+at+"]")
}

// check of a block or an element, at a place that is named in what it says.
type check func(c *checker, at string, o object)

// elementCheck is that of an element that people can use, or of a picture.
func elementCheck(kind string) (is check, known bool) {
	switch kind {
	case "button":
		return (*checker).button, true
	case "static_select", "multi_static_select":
		return (*checker).options, true
	case "overflow":
		return (*checker).overflow, true
	case "radio_buttons", "checkboxes":
		return (*checker).few, true
	case "image":
		return (*checker).image, true
	case "external_select", "users_select", "multi_users_select", "conversations_select", "multi_conversations_select",
		"channels_select", "multi_channels_select", "plain_text_input", "email_text_input", "url_text_input",
		"number_input", "datepicker", "timepicker", "datetimepicker":
		return (*checker).selection, true
	}
	return nil, false
}

// blockCheck is that of a block; nil: it is known, and has no limits here. A
// Validator knows more of their shape, but no lengths.
func blockCheck(kind string) (is check, known bool) {
	switch kind {
	case "section":
		return (*checker).section, true
	case "header":
		return (*checker).header, true
	case "context":
		return (*checker).context, true
	case "actions":
		return (*checker).actions, true
	case "input":
		return (*checker).input, true
	case "markdown":
		return (*checker).markdownBlock, true
	case "image":
		return (*checker).image, true
	case "plan":
		return (*checker).plan, true
	case "divider", "rich_text", "task_card", "table", "alert", "file", "video", "card", "carousel", "container",
		"context_actions", "data_table":
		return nil, true
	}
	return nil, false
}

// checkBlocks returns what is wrong with blocks.
func checkBlocks(blocks []object, most int) []string {
	c := &checker{ids: map[string]bool{}}
	if len(blocks) > most {
		c.fail("/blocks", "no more than %d items allowed", most)
	}
	for n, b := range blocks {
		c.block(fmt.Sprintf("/blocks/%d", n), b)
	}
	if c.markdown > maxMarkdown {
		c.fail("/blocks", "markdown blocks must be less than %d characters together", maxMarkdown+1)
	}
	return c.problems
}

func (c *checker) block(at string, b object) {
	check, known := blockCheck(str(b, "type"))
	if !known {
		c.fail(at+"/type", "unsupported type: %s", str(b, "type"))
		return
	}
	id := str(b, "block_id")
	c.most(at+"/block_id", id, 255)
	if id != "" && c.ids[id] {
		c.fail(at+"/block_id", "`block_id` %s already exists", id)
	}
	c.ids[id] = true
	c.distinct(at, b)
	if check != nil {
		check(c, at, b)
	}
}

// distinct refuses an action_id that is there twice. Assumed: it may be in
// several blocks of a message.
func (c *checker) distinct(at string, b object) {
	seen := map[string]bool{}
	for _, e := range interactive(b) {
		id := str(e, "action_id")
		c.most(at+"/action_id", id, 255)
		if id != "" && seen[id] {
			c.fail(at+"/action_id", "`action_id` %s already exists", id)
		}
		seen[id] = true
	}
}

// most refuses a text that is too long.
func (c *checker) most(at, text string, most int) {
	if length(text) > most {
		c.fail(at, "must be less than %d characters", most+1)
	}
}

// text checks a text object. Kind is the type that it must have; empty: any.
func (c *checker) text(at string, o object, kind string, most int) {
	has, text := str(o, "type"), str(o, "text")
	switch {
	case o == nil:
		c.fail(at, "missing required field")
	case has != "plain_text" && has != "mrkdwn" || kind != "" && has != kind:
		c.fail(at+"/type", "failed to match the type of a text")
	case text == "":
		c.fail(at+"/text", "must be more than 0 characters")
	}
	c.most(at+"/text", text, most)
}

func (c *checker) between(at string, have, least, most int) {
	if have < least {
		c.fail(at, "must provide at least %d items", least)
	}
	if have > most {
		c.fail(at, "no more than %d items allowed", most)
	}
}

// element checks what is of one of several types; none: of any.
func (c *checker) element(at string, e object, types ...string) {
	kind := str(e, "type")
	check, known := elementCheck(kind)
	if !known || len(types) > 0 && !slices.Contains(types, kind) {
		c.fail(at+"/type", "unsupported type: %s", kind)
		return
	}
	check(c, at, e)
}

func (c *checker) header(at string, b object) {
	c.text(at+"/text", child(b, "text"), "plain_text", 150)
}

func (c *checker) section(at string, b object) {
	text, fields := child(b, "text"), list(b, "fields")
	if text != nil || len(fields) == 0 {
		c.text(at+"/text", text, "", 3000)
	}
	c.between(at+"/fields", len(fields), 0, 10)
	for n, f := range fields {
		c.text(fmt.Sprintf("%s/fields/%d", at, n), f, "", 2000)
	}
	if e := child(b, "accessory"); e != nil {
		c.element(at+"/accessory", e)
	}
}

func (c *checker) context(at string, b object) {
	elements := list(b, "elements")
	c.between(at+"/elements", len(elements), 1, 10)
	for n, e := range elements {
		at := fmt.Sprintf("%s/elements/%d", at, n)
		if str(e, "type") == "image" {
			c.image(at, e)
			continue
		}
		c.text(at, e, "", 3000)
	}
}

func (c *checker) actions(at string, b object) {
	elements := list(b, "elements")
	c.between(at+"/elements", len(elements), 1, 25)
	for n, e := range elements {
		c.element(fmt.Sprintf("%s/elements/%d", at, n), e)
	}
}

func (c *checker) input(at string, b object) {
	c.text(at+"/label", child(b, "label"), "plain_text", 2000)
	if hint := child(b, "hint"); hint != nil {
		c.text(at+"/hint", hint, "plain_text", 2000)
	}
	c.element(at+"/element", child(b, "element"))
}

func (c *checker) markdownBlock(at string, b object) {
	if str(b, "text") == "" {
		c.fail(at+"/text", "must be more than 0 characters")
	}
	c.markdown += length(str(b, "text"))
}

func (c *checker) image(at string, b object) {
	if str(b, "image_url") == "" && b["slack_file"] == nil {
		c.fail(at+"/image_url", "missing required field")
	}
	if str(b, "alt_text") == "" {
		c.fail(at+"/alt_text", "missing required field")
	}
	c.most(at+"/image_url", str(b, "image_url"), 3000)
	c.most(at+"/alt_text", str(b, "alt_text"), 2000)
}

func (c *checker) plan(at string, b object) {
	tasks, seen := list(b, "tasks"), map[string]bool{}
	c.between(at+"/tasks", len(tasks), 0, 50)
	for n, task := range tasks {
		id := str(task, "task_id")
		if id == "" || seen[id] {
			c.fail(fmt.Sprintf("%s/tasks/%d/task_id", at, n), "must be unique")
		}
		seen[id] = true
	}
}

func (c *checker) button(at string, e object) {
	c.text(at+"/text", child(e, "text"), "plain_text", 75)
	c.most(at+"/value", str(e, "value"), 2000)
	c.most(at+"/url", str(e, "url"), 3000)
	if style := str(e, "style"); style != "" && style != "primary" && style != "danger" {
		c.fail(at+"/style", "failed to match a style: %s", style)
	}
	c.confirm(at, e)
}

// confirm checks the question that is asked before something is done.
func (c *checker) confirm(at string, e object) {
	q := child(e, "confirm")
	if q == nil {
		return
	}
	at += "/confirm"
	c.text(at+"/title", child(q, "title"), "plain_text", 100)
	c.text(at+"/text", child(q, "text"), "", 300)
	c.text(at+"/confirm", child(q, "confirm"), "plain_text", 30)
	c.text(at+"/deny", child(q, "deny"), "plain_text", 30)
}

// selection checks what all that can be filled in has.
func (c *checker) selection(at string, e object) {
	if p := child(e, "placeholder"); p != nil {
		c.text(at+"/placeholder", p, "plain_text", 150)
	}
	c.confirm(at, e)
}

func (c *checker) options(at string, e object) {
	c.selection(at, e)
	if groups := list(e, "option_groups"); len(groups) > 0 {
		c.between(at+"/option_groups", len(groups), 1, 100)
		for n, g := range groups {
			c.choices(fmt.Sprintf("%s/option_groups/%d", at, n), g, 100)
		}
		return
	}
	c.choices(at, e, 100)
}

func (c *checker) overflow(at string, e object) {
	c.choices(at, e, 5)
	c.confirm(at, e)
}

func (c *checker) few(at string, e object) {
	c.choices(at, e, 10)
	c.confirm(at, e)
}

func (c *checker) choices(at string, e object, most int) {
	options := list(e, "options")
	c.between(at+"/options", len(options), 1, most)
	for n, o := range options {
		at := fmt.Sprintf("%s/options/%d", at, n)
		c.text(at+"/text", child(o, "text"), "", 75)
		c.most(at+"/value", str(o, "value"), 150)
		if str(o, "value") == "" {
			c.fail(at+"/value", "missing required field")
		}
		if d := child(o, "description"); d != nil {
			c.text(at+"/description", d, "", 75)
		}
	}
}
