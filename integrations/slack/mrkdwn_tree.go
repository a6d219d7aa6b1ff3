package slack

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// passage is a part of a text that begins on a line of its own: a paragraph, an
// entry of a list, or code.
type passage struct {
	// first is put before its first line, and rest before each other one.
	first, rest string
	runs        []run
	// code is shown as it is, in place of runs.
	code string
	// close: there is no empty line before it.
	close bool
}

// place is where in a text a block stands.
type place struct {
	quoted bool
	// depth in lists, and the mark of the entry that the block begins.
	depth int
	mark  string
	// close: see passage. tight: so are the blocks that follow this one.
	close, tight bool
}

// maxDepth is how deep lists are shown to be in each other.
const maxDepth = 6

// lines returns what stands before the first line of a block here, and before
// the others.
func (p place) lines() (first, rest string) {
	quote := ""
	if p.quoted {
		quote = "> "
	}
	indent := strings.Repeat("    ", min(max(p.depth-1, 0), maxDepth))
	if p.depth > 0 {
		rest = "   "
	}
	if first = p.mark; first == "" {
		first = rest
	}
	return quote + indent + first, quote + indent + rest
}

// tree is a text that was parsed, on its way to passages.
type tree struct {
	source []byte
	out    []passage
}

// passagesOf takes a text in Markdown apart, as GitHub understands it.
func passagesOf(markdown string) []passage {
	t := &tree{source: []byte(markdown)}
	t.blocks(newParser().Parse(text.NewReader(t.source)), place{})
	return t.out
}

func newParser() parser.Parser {
	inline := append(parser.DefaultInlineParsers(),
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
		util.Prioritized(extension.NewLinkifyParser(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"})), 999),
	)
	paragraphs := append(parser.DefaultParagraphTransformers(),
		util.Prioritized(smallTables{extension.NewTableParagraphTransformer()}, 200))
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(inline...),
		parser.WithParagraphTransformers(paragraphs...),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}

// maxCells of a table: a wide heading over many short rows would make millions.
const maxCells = 2000

// smallTables makes tables of paragraphs; big ones stay what they are.
type smallTables struct{ parser.ParagraphTransformer }

func (s smallTables) Transform(p *ast.Paragraph, r text.Reader, c parser.Context) {
	widest := 0
	lines := p.Lines()
	for i := range lines.Len() {
		at := lines.At(i)
		widest = max(widest, bytes.Count(at.Value(r.Source()), []byte("|"))+1)
	}
	if widest*lines.Len() <= maxCells {
		s.ParagraphTransformer.Transform(p, r, c)
	}
}

// blocks takes in what a block consists of.
func (t *tree) blocks(of ast.Node, at place) {
	for n := of.FirstChild(); n != nil; n = n.NextSibling() {
		before := len(t.out)
		t.block(n, at)
		if len(t.out) > before {
			at.mark, at.close = "", at.tight
		}
	}
}

func (t *tree) block(n ast.Node, at place) {
	switch n := n.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		t.add(at, t.inline(n, run{}))
	case *ast.Heading:
		t.add(at, t.inline(n, run{style: bold}))
	case *ast.ThematicBreak:
		t.add(at, []run{{text: strings.Repeat("─", 10)}})
	case *ast.Blockquote:
		at.quoted, at.tight = true, false
		t.blocks(n, at)
	case *ast.List:
		t.list(n, at)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		t.code(t.raw(n.Lines()), at)
	case *ast.HTMLBlock:
		html := t.raw(n.Lines())
		if n.HasClosure() {
			html += string(n.ClosureLine.Value(t.source))
		}
		t.add(at, []run{{text: strings.TrimSpace(html)}})
	case *extended.Table:
		t.code(t.table(n), at)
	}
}

// list takes in the entries of a list.
func (t *tree) list(l *ast.List, at place) {
	number := l.Start
	in := place{quoted: at.quoted, depth: at.depth + 1, close: at.close, tight: l.IsTight}
	for n := l.FirstChild(); n != nil; n = n.NextSibling() {
		in.mark = bullet(at.depth)
		if l.IsOrdered() {
			in.mark = fmt.Sprintf("%d. ", number)
			number++
		}
		if task := taskOf(n); task != "" {
			in.mark = task
		}
		t.blocks(n, in)
		in.close = l.IsTight
	}
}

func bullet(depth int) string {
	if depth%2 == 1 {
		return "◦ "
	}
	return "• "
}

// taskOf is the mark of a list's entry that can be ticked off; empty: it cannot.
func taskOf(item ast.Node) string {
	if item.FirstChild() == nil || item.FirstChild().FirstChild() == nil {
		return ""
	}
	box, ok := item.FirstChild().FirstChild().(*extended.TaskCheckBox)
	switch {
	case !ok:
		return ""
	case box.IsChecked:
		return "☑ "
	}
	return "☐ "
}

func (t *tree) add(at place, runs []run) {
	runs = trimmed(runs)
	if len(runs) == 0 {
		return
	}
	p := passage{runs: runs, close: at.close}
	p.first, p.rest = at.lines()
	t.out = append(t.out, p)
}

// code takes in lines of code. They stand at the edge even within lists and
// quotations, for there Slack would show the marks of these in the code.
func (t *tree) code(lines string, at place) {
	if lines = strings.Trim(visible(lines), "\n"); strings.TrimSpace(lines) != "" {
		t.out = append(t.out, passage{code: lines, close: at.close})
	}
}

func (t *tree) raw(lines *text.Segments) string {
	var b strings.Builder
	for i := range lines.Len() {
		line := lines.At(i)
		b.Write(line.Value(t.source))
	}
	return b.String()
}

// table writes a table with its columns below each other.
func (t *tree) table(of *extended.Table) string {
	var rows [][]string
	var widths []int
	for r := of.FirstChild(); r != nil; r = r.NextSibling() {
		var row []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			text := strings.Join(strings.Fields(spelled(t.inline(c, run{}))), " ")
			if len(widths) == len(row) {
				widths = append(widths, 0)
			}
			widths[len(row)] = min(max(widths[len(row)], length(text)), maxWidth)
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	var b strings.Builder
	for i, row := range rows {
		tabulate(&b, row, widths)
		if i == 0 {
			b.WriteString(rule(widths) + "\n")
		}
	}
	return b.String()
}

// maxWidth that a column of a table is widened to, in characters.
const maxWidth = 60

func tabulate(b *strings.Builder, row []string, widths []int) {
	for i, cell := range row {
		b.WriteString(cell)
		if i < len(row)-1 {
			b.WriteString(strings.Repeat(" ", max(0, widths[i]-length(cell))) + "  ")
		}
	}
	b.WriteString("\n")
}

func rule(widths []int) string {
	var parts []string
	for _, w := range widths {
		parts = append(parts, strings.Repeat("─", w))
	}
	return strings.Join(parts, "  ")
}
