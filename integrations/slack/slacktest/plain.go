package slacktest

import (
	"fmt"
	"regexp"
	"strings"
)

// marked is a mention, a link or a date in Slack's own text.
var marked = regexp.MustCompile(`<([^<>]+)>`)

// plain is a text as people read it: mentions by name, links with their
// addresses.
func (s *Server) plain(text string) string {
	text = marked.ReplaceAllStringFunc(text, func(m string) string { return s.readMark(m[1 : len(m)-1]) })
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
}

func (s *Server) readMark(mark string) string {
	target, label, labelled := strings.Cut(mark, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		return s.nameOf(target[1:], label)
	case strings.HasPrefix(target, "#"):
		if c := s.channelByID(target[1:]); c != nil {
			return "#" + c.name
		}
		return "#" + label
	case strings.HasPrefix(target, "!date^"):
		return "DATE"
	case strings.HasPrefix(target, "!"):
		return "@" + strings.TrimPrefix(target, "!")
	case labelled && label != target:
		return label + " (" + target + ")"
	}
	return target
}

func (s *Server) nameOf(id, otherwise string) string {
	if u := s.userByID(id); u != nil {
		return "@" + u.handle
	}
	if otherwise == "" {
		otherwise = id
	}
	return "@" + otherwise
}

// rendered is a message as people read it, line by line. Blocks hide the text.
func (s *Server) rendered(c content) string {
	if len(c.blocks) > 0 {
		return s.renderedBlocks(c.blocks)
	}
	if c.markdown {
		return c.text
	}
	return s.plain(c.text)
}

func (s *Server) renderedBlocks(blocks []object) string {
	var lines []string
	for _, b := range blocks {
		lines = append(lines, s.renderedBlock(b)...)
	}
	return strings.Join(lines, "\n")
}

func (s *Server) renderedBlock(b object) []string {
	switch str(b, "type") {
	case "divider":
		return []string{"---"}
	case "header":
		return []string{"# " + s.textOf(b["text"])}
	case "markdown":
		return []string{str(b, "text")}
	case "context":
		return []string{"(" + strings.Join(s.textsOf(list(b, "elements")), " ") + ")"}
	case "actions":
		return []string{strings.Join(s.controls(list(b, "elements")), " ")}
	case "input":
		return []string{s.textOf(b["label"]) + ": " + s.control(child(b, "element"))}
	case "image":
		return []string{"[image: " + str(b, "alt_text") + "]"}
	case "section":
		return s.renderedSection(b)
	case "plan":
		lines := []string{s.textOf(b["title"])}
		for _, task := range list(b, "tasks") {
			lines = append(lines, s.task(task))
		}
		return lines
	case "task_card":
		return []string{s.task(b)}
	}
	return []string{s.textOf(b)}
}

func (s *Server) renderedSection(b object) []string {
	var lines []string
	if text := s.textOf(b["text"]); text != "" {
		lines = append(lines, text)
	}
	lines = append(lines, s.textsOf(list(b, "fields"))...)
	if e := child(b, "accessory"); e != nil {
		lines = append(lines, s.control(e))
	}
	return lines
}

func (s *Server) task(t object) string {
	return fmt.Sprintf("- [%s] %s", str(t, "status"), s.textOf(t["title"]))
}

func (s *Server) textsOf(all []object) []string {
	var out []string
	for _, o := range all {
		out = append(out, s.textOf(o))
	}
	return out
}

// textOf gathers the words of a text object, or of what is rich text.
func (s *Server) textOf(v any) string {
	o, ok := v.(object)
	if !ok {
		text, _ := v.(string)
		return text
	}
	text := str(o, "text")
	switch str(o, "type") {
	case "mrkdwn":
		return s.plain(text)
	case "image":
		return "[image: " + str(o, "alt_text") + "]"
	case "user":
		return s.nameOf(str(o, "user_id"), "")
	case "channel":
		return s.readMark("#" + str(o, "channel_id"))
	case "broadcast":
		return "@" + str(o, "range")
	case "emoji":
		return ":" + str(o, "name") + ":"
	case "link":
		return strings.TrimSpace(text + " " + str(o, "url"))
	case "rich_text_list":
		return "- " + strings.Join(s.textsOf(list(o, "elements")), "\n- ")
	case "rich_text":
		return strings.Join(s.textsOf(list(o, "elements")), "\n")
	}
	return text + strings.Join(s.textsOf(list(o, "elements")), "")
}

func (s *Server) controls(elements []object) []string {
	var out []string
	for _, e := range elements {
		out = append(out, s.control(e))
	}
	return out
}

// control is an element that people use: its label, or what there is to choose.
func (s *Server) control(e object) string {
	kind := str(e, "type")
	switch {
	case kind == "image":
		return s.textOf(e)
	case kind == "button" && str(e, "url") != "":
		return "[" + s.textOf(e["text"]) + " -> " + str(e, "url") + "]"
	case kind == "button":
		return "[" + s.textOf(e["text"]) + "]"
	}
	label := s.textOf(e["placeholder"])
	if label == "" {
		label = kind
	}
	if all := options(e); len(all) > 0 {
		var names []string
		for _, o := range all {
			names = append(names, s.textOf(o["text"]))
		}
		label += ": " + strings.Join(names, " | ")
	}
	return "[" + label + "]"
}

// options lists what there is to choose, also in groups.
func options(e object) []object {
	all := list(e, "options")
	for _, g := range list(e, "option_groups") {
		all = append(all, list(g, "options")...)
	}
	return all
}
