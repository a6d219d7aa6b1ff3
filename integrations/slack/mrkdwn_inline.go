package slack

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// style of characters.
type style uint8

const (
	bold style = 1 << iota
	italic
	struck
	coded
)

// run is a stretch of text that looks the same throughout. Line breaks are in
// the text.
type run struct {
	text  string
	style style
	// url that it leads to; empty: nowhere.
	url string
}

// inline is the text in a block, or in a part of its text.
func (t *tree) inline(of ast.Node, as run) []run {
	var out []run
	t.gather(of, as, &out)
	return merged(out)
}

// merged puts runs together that look the same. Links stay apart: two that are
// next to each other may lead to the same place.
func merged(runs []run) []run {
	var out []run
	for from := 0; from < len(runs); {
		to := from + 1
		var text strings.Builder
		text.WriteString(runs[from].text)
		for ; to < len(runs) && runs[from].url == "" && runs[to].url == "" && runs[to].style == runs[from].style; to++ {
			text.WriteString(runs[to].text)
		}
		if r := runs[from].saying(visible(text.String())); r.text != "" {
			out = append(out, r)
		}
		from = to
	}
	return out
}

// gather adds the text in a part of a text to out. as is how it looks.
func (t *tree) gather(of ast.Node, as run, out *[]run) {
	for n := of.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Emphasis:
			in := as
			in.style |= emphasis(n.Level)
			t.gather(n, in, out)
		case *extended.Strikethrough:
			in := as
			in.style |= struck
			t.gather(n, in, out)
		default:
			*out = append(*out, t.leaf(n, as))
		}
	}
}

func (t *tree) leaf(n ast.Node, as run) run {
	switch n := n.(type) {
	case *ast.Text:
		return as.saying(t.text(n))
	case *ast.String:
		return as.saying(literal(n.Value))
	case *ast.CodeSpan:
		as.style |= coded
		return as.saying(codeText(t.spelled(n)))
	case *ast.Link:
		return as.leading(literal(n.Destination), t.spelled(n))
	case *ast.Image:
		return as.leading(literal(n.Destination), t.spelled(n))
	case *ast.AutoLink:
		if n.AutoLinkType == ast.AutoLinkEmail {
			return as.saying(string(n.Label(t.source)))
		}
		return as.leading(string(n.URL(t.source)), string(n.Label(t.source)))
	case *ast.RawHTML:
		return as.saying(tag(n.Segments.Value(t.source)))
	}
	return run{}
}

func emphasis(level int) style {
	if level > 1 {
		return bold
	}
	return italic
}

// spelled is the mere text in a part of a text.
func (t *tree) spelled(of ast.Node) string { return spelled(t.inline(of, run{})) }

func spelled(runs []run) string {
	var b strings.Builder
	for _, r := range runs {
		b.WriteString(r.text)
	}
	return b.String()
}

func (r run) saying(text string) run {
	r.text = text
	return r
}

// leading is a link. Where its label would deceive, the address is shown: see
// disguised.
func (r run) leading(to, label string) run {
	label = strings.Join(strings.Fields(visible(label)), " ")
	r.url, r.style = address(to), r.style&^coded
	switch {
	case r.url == "":
		return r.saying(label)
	case label == "", disguised(label, r.url):
		return r.saying(r.url)
	}
	return r.saying(label)
}

// bare is an address without what people leave out.
func bare(address string) string {
	for _, scheme := range []string{"https://", "http://", "mailto:"} {
		address = strings.TrimPrefix(address, scheme)
	}
	return strings.TrimSuffix(address, "/")
}

// maxAddress that a link may have, in characters as they are sent.
const maxAddress = 2000

// inAddress are the characters that mean something to Slack, or end an address.
var inAddress = strings.NewReplacer("<", "%3C", ">", "%3E", "|", "%7C", `"`, "%22", " ", "%20", "`", "%60", "\\", "%5C", "^", "%5E")

// address is one that a link may lead to, on the web or of a mailbox; empty: it
// is none.
func address(to string) string {
	to = inAddress.Replace(strings.TrimSpace(to))
	u, err := url.Parse(to)
	if err != nil || length(escape(to)) > maxAddress || visible(to) != to || strings.ContainsAny(to, "\n\t") {
		return ""
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host != "" && u.User == nil {
			return to
		}
	case "mailto":
		if strings.Contains(u.Opaque, "@") {
			return to
		}
	}
	return ""
}

// text is a node's, with the line break behind it.
func (t *tree) text(n *ast.Text) string {
	value := n.Segment.Value(t.source)
	text := string(value)
	if !n.IsRaw() {
		text = literal(value)
	}
	if n.SoftLineBreak() || n.HardLineBreak() {
		text += "\n"
	}
	return text
}

// literal is text without the notation for characters: \* and &amp;.
func literal(text []byte) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && util.IsPunct(text[i+1]) {
			i++
			b.WriteByte(text[i])
			continue
		}
		if value, n := character(text[i:]); n > 0 {
			b.WriteString(value)
			i += n - 1
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// maxEntity is the length of the longest name of a character, and more.
const maxEntity = 40

// character is the one that a text begins with by its name or number, and how
// long that is; 0: it begins with none.
func character(text []byte) (value string, n int) {
	if text[0] != '&' {
		return "", 0
	}
	n = bytes.IndexByte(text[:min(len(text), maxEntity)], ';') + 1
	if n == 0 {
		return "", 0
	}
	named := text[:n]
	resolved := util.ResolveEntityNames(util.ResolveNumericReferences(named))
	if bytes.Equal(resolved, named) {
		return "", 0
	}
	return string(resolved), n
}

var breakTag = regexp.MustCompile(`^(?i:<br\s*/?>)$`)

// tag is a tag as it is shown: as it was written, but for line breaks.
func tag(html []byte) string {
	if breakTag.Match(html) {
		return "\n"
	}
	return string(html)
}

// codeText is what stands in code within a line.
func codeText(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
}
