package bot

import "strings"

// coverSpans marks the plain lines that begin inside a code span or a comment
// of their own paragraph.
func (l *layout) coverSpans() {
	for first := 0; first < len(l.lines); first++ {
		if l.lines[first].kind != plain {
			continue
		}
		last := l.paragraph(first)
		if last > first {
			l.cover(first, last)
		} else {
			l.inline(l.lines[first].start, l.lines[first].end)
		}
		first = last
	}
}

// paragraph returns the last line of the paragraph that begins at first.
func (l *layout) paragraph(first int) int {
	if l.standsAlone(first) {
		return first
	}
	last := first
	for last+1 < len(l.lines) && l.continues(last+1) {
		last++
	}
	return last
}

// continues reports whether a line goes on with the paragraph above it. The
// marker of a list ends the paragraph only if there is an item behind it.
func (l *layout) continues(i int) bool {
	switch l.lines[i].kind {
	case indented:
		return true
	case plain:
		_, rest := indentation(l.text(i))
		return !l.standsAlone(i) && (listMarker(rest) == 0 || strings.TrimSpace(rest[listMarker(rest):]) == "")
	}
	return false
}

// standsAlone: headings, their underlines and rules belong to no paragraph.
func (l *layout) standsAlone(i int) bool {
	_, rest := indentation(l.text(i))
	rest = strings.TrimRight(rest, " \t")
	switch rest[0] {
	case '#':
		n := run(rest)
		return n <= 6 && (n == len(rest) || rest[n] == ' ' || rest[n] == '\t')
	case '=', '-', '*', '_':
		return strings.Trim(rest, rest[:1]+" \t") == ""
	}
	return false
}

func (l *layout) text(i int) string { return l.body[l.lines[i].start:l.lines[i].end] }

// cover marks those of the lines first to last that begin inside a span.
func (l *layout) cover(first, last int) {
	spans := l.inline(l.lines[first].start, l.lines[last].end)
	for i := first; i <= last; i++ {
		for len(spans) > 0 && spans[0].to <= l.lines[i].start {
			spans = spans[1:]
		}
		if len(spans) > 0 && spans[0].from < l.lines[i].start {
			l.lines[i].kind = covered
		}
	}
}

// inline finds the code spans and comments of a paragraph, in order, and notes
// the comments.
func (l *layout) inline(from, to int) (spans []span) {
	if strings.IndexByte(l.body[from:to], '`') < 0 && !strings.Contains(l.body[from:to], "<!--") {
		return nil
	}
	ticks := rows(l.body, from, to)
	unending := false // there is no end of a comment any more
	for i := from; i < to; {
		end := i + 1
		switch l.body[i] {
		case '\\':
			end++
		case '`':
			var found bool
			if end, found = ticks.span(i, i+run(l.body[i:to])); found {
				spans = append(spans, span{i, end})
			}
		case '<':
			if unending || !l.html || !strings.HasPrefix(l.body[i:to], "<!--") {
				break
			}
			if end = l.commentEnd(i, to); end < 0 {
				unending, end = true, i+1
				break
			}
			spans = append(spans, span{i, end})
			l.comments = append(l.comments, span{i, end})
		}
		i = end
	}
	return spans
}

// commentEnd is where the comment that begins at i ends, or -1 if it does not.
func (l *layout) commentEnd(i, to int) int {
	begin := i + len("<!") // "<!-->" is a whole comment
	n := strings.Index(l.body[begin:to], endOfComment)
	if n < 0 {
		return -1
	}
	return begin + n + len(endOfComment)
}

// backticks are where the rows of backticks of a paragraph begin, by length.
type backticks map[int][]int

func rows(body string, from, to int) backticks {
	b := backticks{}
	for i := from; i < to; i++ {
		if body[i] != '`' {
			continue
		}
		n := run(body[i:to])
		b[n] = append(b[n], i)
		i += n - 1
	}
	return b
}

// span returns where the code span ends that the row from i to end opens: at
// the next row of the same length. Without one the row is plain text.
func (b backticks) span(i, end int) (int, bool) {
	n := end - i
	for len(b[n]) > 0 && b[n][0] < end {
		b[n] = b[n][1:]
	}
	if len(b[n]) == 0 {
		return end, false
	}
	return b[n][0] + n, true
}
