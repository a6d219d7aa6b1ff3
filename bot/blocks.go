package bot

import (
	"slices"
	"strings"
)

// kind of a line of Markdown, as far as it matters for what is said in it.
type kind uint8

const (
	plain kind = iota
	blank
	quoted   // begins with >
	indented // four columns or more: code, or the rest of a paragraph
	fenced   // a fence, or what it encloses
	hidden   // an HTML comment, or raw HTML that shows code or a quotation
	covered  // begins inside a code span or a comment of its paragraph
)

// line is body[start:end], without the line break.
type line struct {
	start, end int
	kind       kind
}

// span is a range of bytes.
type span struct{ from, to int }

// block is a construct that takes lines in until it is closed.
type block struct {
	kind kind
	// need is the column that a list item puts its content at; a line that
	// does not reach it ends the item and all that is in it.
	need int
	// fence is the row of ` or ~ that opened it.
	fence string
	// until closes raw HTML, in lower case.
	until string
	// first and last are its lines; closed says that it was not just cut off.
	first, last int
	closed      bool
}

// layout is a body of Markdown with every line classified. It follows
// CommonMark where people would notice, and errs towards "not a command":
// lists matter only when a block begins on the line of their marker, and a
// fence that the end of a list item would close stays open until its mark.
//
// Nothing that stands above a plain line changes how the lines below it are
// read. So what is found at a command does not depend on the text before it.
type layout struct {
	body  string
	lines []line
	// html: tags and comments mean something here.
	html bool
	// comments are the HTML comments outside of code, in order.
	comments []span
	// blocks are the fences and the raw HTML, in order.
	blocks []*block
	// open is the block that the next line may belong to.
	open *block
	// commentFrom is where the comment that is open began.
	commentFrom int
}

// layOut classifies the lines of body in linear time. Without html, as in a
// text whose tags have been defused, there are no comments and no raw HTML.
func layOut(body string, html bool) *layout {
	l := &layout{body: body, html: html, lines: make([]line, 0, strings.Count(body, "\n")+1)}
	for start := 0; start <= len(body); {
		end := len(body)
		if i := strings.IndexByte(body[start:], '\n'); i >= 0 {
			end = start + i
		}
		l.lines = append(l.lines, line{start, end, l.classify(start, end)})
		start = end + 1
	}
	l.endComment(len(body))
	l.coverSpans()
	slices.SortFunc(l.comments, func(a, b span) int { return a.from - b.from })
	return l
}

func (l *layout) classify(start, end int) kind {
	text := l.body[start:end]
	columns, rest := indentation(text)
	if l.open != nil && rest != "" && columns < l.open.need {
		l.endComment(start)
		l.open = nil
	}
	if l.open == nil {
		return l.begin(start, end)
	}
	b := l.open
	b.last = len(l.lines)
	l.close(l.closes(start, end))
	return b.kind
}

// begin classifies a line outside of every block, and may open one.
func (l *layout) begin(start, end int) kind {
	columns, rest := indentation(l.body[start:end])
	switch {
	case rest == "":
		return blank
	case columns > 3:
		return indented
	case rest[0] == '>':
		return quoted
	}
	need, rest := listItems(columns, rest)
	if f := fenceOf(rest); f != "" {
		return l.opens(&block{kind: fenced, need: need, fence: f})
	}
	if !l.html {
		return plain
	}
	if until := rawHTML(rest); until != "" {
		l.opens(&block{kind: hidden, need: need, until: until})
		l.commentFrom = end - len(rest)
		l.close(l.closes(l.commentFrom+len("<!"), end))
		return hidden
	}
	return plain
}

func (l *layout) opens(b *block) kind {
	b.first, b.last = len(l.lines), len(l.lines)
	l.open = b
	l.blocks = append(l.blocks, b)
	return b.kind
}

func (l *layout) close(really bool) {
	if really {
		l.open.closed, l.open = true, nil
	}
}

// closes reports whether body[from:end], in an open block, ends it.
func (l *layout) closes(from, end int) bool {
	text := l.body[from:end]
	switch {
	case l.open.fence != "":
		return l.open.closedBy(text)
	case l.open.until == endOfComment:
		return l.leaveComments(from, end)
	default:
		return strings.Contains(strings.ToLower(text), l.open.until)
	}
}

// closedBy reports whether text is the fence's other end: the same mark, at
// least as long, and nothing else.
func (b *block) closedBy(text string) bool {
	columns, rest := indentation(text)
	if columns-b.need > 3 {
		return false
	}
	row := strings.TrimRight(rest, " \t")
	return len(row) >= len(b.fence) && strings.Trim(row, b.fence[:1]) == ""
}

// leaveComments follows the comments through body[from:end], which begins
// inside one, and reports whether it ends outside.
func (l *layout) leaveComments(from, end int) bool {
	for {
		i := strings.Index(l.body[from:end], endOfComment)
		if i < 0 {
			return false
		}
		from += i + len(endOfComment)
		l.comments = append(l.comments, span{l.commentFrom, from})
		i = strings.Index(l.body[from:end], "<!--")
		if i < 0 {
			return true
		}
		l.commentFrom = from + i
		from = l.commentFrom + len("<!") // "<!-->" is a whole comment
	}
}

func (l *layout) endComment(at int) {
	if l.open != nil && l.open.until == endOfComment {
		l.comments = append(l.comments, span{l.commentFrom, at})
	}
}

const endOfComment = "-->"

// indentation counts the columns of leading white space, a tab reaching to the
// next multiple of four. rest is empty for a blank line.
func indentation(text string) (columns int, rest string) {
	for i := range len(text) {
		switch text[i] {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns, text[i:]
		}
	}
	return columns, ""
}

// listItems steps over the markers of list items that begin on this line, and
// returns the column of the innermost one's content: zero without a list.
func listItems(columns int, rest string) (need int, content string) {
	for {
		width := listMarker(rest)
		if width == 0 {
			return need, rest
		}
		gap, content := indentation(rest[width:])
		if content == "" || gap > 4 {
			return need, rest
		}
		columns += width + gap
		need, rest = columns, content
	}
}

// listMarker is the length of "-", "*", "+", "1." or "1)" before white space.
func listMarker(s string) int {
	n := 0
	for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	marks := ".)"
	if n == 0 {
		marks = "-*+"
	}
	if n >= len(s) || strings.IndexByte(marks, s[n]) < 0 {
		return 0
	}
	n++
	if n < len(s) && s[n] != ' ' && s[n] != '\t' {
		return 0
	}
	return n
}

// fenceOf returns the row of three or more ` or ~ that opens a fence here.
func fenceOf(rest string) string {
	if len(rest) < 3 || rest[0] != '`' && rest[0] != '~' {
		return ""
	}
	n := run(rest)
	if n < 3 || rest[0] == '`' && strings.IndexByte(rest[n:], '`') >= 0 {
		return ""
	}
	return rest[:n]
}

// run is how often the first byte of s is repeated at its beginning.
func run(s string) int {
	n := 1
	for n < len(s) && s[n] == s[0] {
		n++
	}
	return n
}

// rawHTML returns what closes the raw HTML that begins here: comments, and the
// elements in which words are not the writer's own, or not words.
func rawHTML(rest string) (until string) {
	if rest[0] != '<' || len(rest) < 2 {
		return ""
	}
	switch {
	case strings.HasPrefix(rest, "<!--"):
		return endOfComment
	case strings.HasPrefix(rest, "<?"):
		return "?>"
	case strings.HasPrefix(rest, "<![CDATA["):
		return "]]>"
	}
	n := 1
	for n < len(rest) && n < 12 && rest[n] != '>' && rest[n] != ' ' && rest[n] != '\t' {
		n++
	}
	switch name := strings.ToLower(rest[1:n]); name {
	case "pre", "code", "script", "style", "textarea", "blockquote":
		return "</" + name + ">"
	}
	return ""
}
