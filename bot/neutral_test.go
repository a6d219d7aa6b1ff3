package bot

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// prose is what GitHub reads for mentions: all but fenced code and code spans.
func prose(text string) string {
	l := layOut(text, true)
	var b strings.Builder
	for first := 0; first < len(l.lines); first++ {
		switch l.lines[first].kind {
		case fenced:
			continue
		case plain, covered, indented:
			last := first
			for last+1 < len(l.lines) && l.lines[last+1].kind != fenced && l.lines[last+1].kind != blank && l.lines[last+1].kind != quoted {
				last++
			}
			b.WriteString(l.withoutSpans(l.lines[first].start, l.lines[last].end) + "\n")
			first = last
		case quoted: // GitHub reads a quotation as a text of its own
			last := first
			for last+1 < len(l.lines) && l.lines[last+1].kind == quoted {
				last++
			}
			inner := l.body[l.lines[first].start:l.lines[last].end]
			b.WriteString(prose(quoteMark.ReplaceAllString(inner, "")) + "\n")
			first = last
		default:
			b.WriteString(l.text(first) + "\n")
		}
	}
	return b.String()
}

var quoteMark = regexp.MustCompile(`(?m)^ {0,3}> ?`)

func (l *layout) withoutSpans(from, to int) string {
	out := l.body[from:to]
	spans := l.inline(from, to)
	for i := len(spans) - 1; i >= 0; i-- {
		out = out[:spans[i].from-from] + "`…`" + out[spans[i].to-from:]
	}
	return out
}

var mention = regexp.MustCompile(`(?:^|[^A-Za-z0-9_/` + "`" + `])@[A-Za-z0-9][A-Za-z0-9-]*`)

// closes finds what would close an issue, in another way than dangers does.
var closes = regexp.MustCompile(`(?i)(?:close|fix|resolve)(?:s|d|es|ed)?[^A-Za-z0-9]{0,20}(?:#[0-9]|GH-[0-9]|https?://)`)

func mentionIn(s string) string { return mention.FindString(s) }

func onlyInCode(text, bad string) bool { return !strings.Contains(prose(text), bad) }

func TestNeutralise(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain", "All *good*, really.", "All *good*, really."},
		{"mention", "ask @octocat", "ask @|octocat"},
		{"mention of a team", "ask @octo/team.", "ask @|octo/team."},
		{"mention at the start", "@octocat", "@|octocat"},
		{"mention behind a dash", "-@octocat", "-@|octocat"},
		{"e-mail", "me@example.com", "me@example.com"},
		{"lonely @", "a @ b", "a @ b"},
		{"doubled", "@@a", "@@|a"},
		{"in an address", "https://medium.com/@me/x", "https://medium.com/%40me/x"},
		{"entity", "&#64;a &commat;b &x3; & c &;", "&|#64;a &|commat;b &|x3; & c &;"},
		{"tags", "<b>x</b> <!-- y --> <?z?> a < b <3", "<|b>x<|/b> <|!-- y --> <|?z?> a < b <3"},
		{"image", "![x](y)", "!|[x](y)"},
		{"closing", "This fixes #12.", "This fi|xes #12."},
		{"closing, in capitals", "CLOSES: GH-3", "CL|OSES: GH-3"},
		{"closing by address", "resolved https://github.com/o/r/issues/1", "re|solved https://github.com/o/r/issues/1"},
		{"closing elsewhere", "fix o/r#1", "fi|x o/r#|1"},
		{"closing over a line", "fixes\n#12", "fi|xes\n#12"},
		{"closing in bold", "**Fixes** **#12**", "**Fi|xes** **#12**"},
		{"reference", "see #12", "see #12"},
		{"reference elsewhere", "see o/r#12", "see o/r#|12"},
		{"anchor", "https://x.test/a/b#1", "https://x.test/a/b#1"},
		{"not closing", "a quick fix. 12 files", "a quick fix. 12 files"},
		{"code block", "a\n```go\n@x <b> fixes #1\n```\nb", "a\n```go\n@x <b> fixes #1\n```\nb"},
		{"code block is closed", "```\n@x", "```\n@x\n```"},
		{"long fence is closed", "~~~~ sh\n```", "~~~~ sh\n```\n~~~~"},
		{"fence is moved", "- a\n  ```\n@b\n  ```\n@c", "- a\n```\n@b\n```\n@|c"},
		{"fence of a list", "- ```\n  @b\n", "- ```\n  @|b\n"},
		{"fence of a quotation", "> ```\n@b", "> ```\n@|b"},
		{"fence in raw HTML", "<pre>\n```\n@b", "<|pre>\n```\n@b\n```"},
		{"fence in a comment", "<!--\n```\n@b\n```\n-->", "<|!--\n```\n@b\n```\n-->"},
		{"code span", "`@b`", "`@|b`"},
		{"control characters", "a\x00b\x1b[1m\u202ec\r\nd", "ab[1mc\nd"},
		{"broken UTF-8", "a\xff", "a\uFFFD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := strings.ReplaceAll(Neutralise(tt.in), joint, "|")
			if got != tt.want {
				t.Errorf("Neutralise(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\n\nb\n":         "> a\n>\n> b",
		"```\n\t```\n```":  "> ```\n>     ```\n> ```",
		"  \tx\n\t \n>  y": ">     x\n>\n> >  y",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzNeutralise(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	for _, s := range bodies {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Neutralise(s)
		if len(s) < maxBody/2 && Neutralise(got) != got {
			t.Fatalf("Neutralise(%q) = %q, and then %q", s, got, Neutralise(got))
		}
		if kept, had := bare(got), bare(legible(s)); len(s) < maxBody && !strings.Contains(kept, had) && len(kept) < len(had) {
			t.Fatalf("Neutralise(%q) = %q lost something", s, got)
		}
		outside := prose(got)
		if m := mentionIn(outside); m != "" {
			t.Fatalf("%q still mentions %q", got, m)
		}
		if m := closes.FindString(outside); m != "" {
			t.Fatalf("%q still closes with %q", got, m)
		}
		for _, tag := range []string{"<!--", "<details", "<img", "<a", "</", "!["} {
			if strings.Contains(outside, tag) {
				t.Fatalf("%q still holds %q", got, tag)
			}
		}
		if l := layOut(got, false); l.open != nil && l.open.need == 0 {
			t.Fatalf("%q leaves a fence open", got)
		}
	})
}

// bare is text without what neutralising may add or move.
func bare(s string) string {
	return strings.NewReplacer(joint, "", " ", "", "\t", "", "%40", "@", "\n", "").Replace(s)
}

func FuzzCut(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 100)
		f.Add(s, 3)
	}
	f.Add("```\nx\n``` not closing\n"+strings.Repeat("y", 50), 52)
	f.Add("- a\n  ```\n"+strings.Repeat("y", 90), 80)
	f.Fuzz(func(t *testing.T, s string, max int) {
		max = min(max, len(s)+10)
		if max < 0 || !utf8.ValidString(s) {
			return
		}
		got := Cut(s, max)
		switch {
		case len(got) > max:
			t.Fatalf("Cut(%q, %d) has %d bytes", s, max, len(got))
		case len(s) <= max && got != s:
			t.Fatalf("Cut(%q, %d) = %q", s, max, got)
		case !utf8.ValidString(got):
			t.Fatalf("Cut(%q, %d) = %q cuts a character", s, max, got)
		case len(s) > max && max > len(cutHere) && !strings.HasSuffix(got, cutHere):
			t.Fatalf("Cut(%q, %d) = %q does not say so", s, max, got)
		}
		if l := layOut(got, false); len(s) > max && max > len(cutHere) && l.open != nil {
			t.Fatalf("Cut(%q, %d) = %q leaves a fence open", s, max, got)
		}
		if c := clip(strings.ReplaceAll(s, "\n", " "), max); len(c) > max || !utf8.ValidString(c) {
			t.Fatalf("clip(%q, %d) = %q", s, max, c)
		}
	})
}

func BenchmarkNeutralise(b *testing.B) {
	text := strings.Repeat("Some words about `code` for @octocat, fixes #12.\n\n```go\nfunc f() {}\n```\n", 200)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Neutralise(text)
	}
}
