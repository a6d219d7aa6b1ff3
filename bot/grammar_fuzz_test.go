package bot

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

var bodies = []string{
	"", "/ship", "/ship fix the login\n\n> why?\n```go\n/ship no\n```\n/ship stop",
	"- ```\n/ship x\n  ```", "a ` b\n/ship c ` d\n\n/ship `e`", "<!-- a --> <!--\n/ship\n-->\n/ship b",
	"/ship [repo=o/r branch=a/b] fix [model=m]\nmore", "/ship budget $5", "\t/ship x\n    /ship y\n   /ship z",
	"/ship a\r\n/ship b\r/ship c", "~~~\n/ship\n~~~~\n/ship", "/ship stop please\n\n<pre>\n/ship\n</pre>",
	"10. ```\n    /ship\n/ship\n\u00a0/ship\u2003x\xff", "/ship x <!-- y -->```\n/ship z", "\\`\n/ship\n`", "<!-->/ship\n/ship",
}

// FuzzParse holds what is true of every body.
func FuzzParse(f *testing.F) {
	for _, b := range bodies {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body string) {
		commands := Parse(body)
		checkCommands(t, body, commands)
		checkHiding(t, body)
		for _, c := range commands {
			checkAgain(t, c)
		}
	})
}

func checkCommands(t *testing.T, body string, commands []Command) {
	t.Helper()
	if len(commands) > maxCommands {
		t.Fatalf("%d commands", len(commands))
	}
	if n := strings.Count(strings.ToLower(body), "/ship"); len(commands) > n {
		t.Fatalf("%d commands where /ship stands %d times", len(commands), n)
	}
	text := normal(body)
	for _, c := range commands {
		checkCommand(t, c)
		if c.Verb != session.Instruct || strings.Contains(text, "<!--") {
			continue
		}
		if !strings.Contains(text, c.Text) && !linesOf(text, c.Text) {
			t.Fatalf("text %q is not of the body", c.Text)
		}
	}
}

// linesOf: every line of part stands in whole. Options may have been taken off
// the first.
func linesOf(whole, part string) bool {
	for line := range strings.SplitSeq(part, "\n") {
		if !strings.Contains(whole, line) {
			return false
		}
	}
	return true
}

func checkCommand(t *testing.T, c Command) {
	t.Helper()
	needsText := false
	switch c.Verb {
	case session.Instruct, session.Model, session.Budget, session.Unclear:
		needsText = true
	case "", session.Stop, session.Retry, session.Status, session.Help, session.Ready:
	default:
		t.Fatalf("verb %q is none of the grammar", c.Verb)
	}
	if needsText != (c.Text != "") {
		t.Fatalf("%s with text %q", c.Verb, c.Text)
	}
	if c.Text != strings.TrimSpace(c.Text) {
		t.Fatalf("text %q is not trimmed", c.Text)
	}
	if c.Repo != "" && !validRepo(c.Repo) || c.Branch != "" && !validBranch(c.Branch) || c.Model != "" && !validModel(c.Model) {
		t.Fatalf("unchecked option in %+v", c)
	}
}

// checkHiding: wrapped into a quotation, into code or a comment, no body holds
// a command.
func checkHiding(t *testing.T, body string) {
	t.Helper()
	text := normal(body)
	if len(text) > 16<<10 {
		return
	}
	fence := strings.Repeat("`", strings.Count(text, "`")+3)
	for what, wrapped := range map[string]string{
		"a quotation":   "> " + strings.ReplaceAll(text, "\n", "\n> "),
		"a fence":       fence + "\n" + text + "\n" + fence,
		"tildes":        "~~~" + strings.Repeat("~", strings.Count(text, "~")) + "\n" + text,
		"indented code": "    " + strings.ReplaceAll(text, "\n", "\n    "),
		"tabs":          "\t" + strings.ReplaceAll(text, "\n", "\n\t"),
		"a comment":     "<!--\n" + strings.ReplaceAll(text, ">", "") + "\n-->",
	} {
		if got := Parse(wrapped); len(got) > 0 {
			t.Fatalf("command in %s: %q gives %+v", what, wrapped, got)
		}
	}
}

// checkAgain: an instruction, asked again, is the same instruction.
func checkAgain(t *testing.T, c Command) {
	t.Helper()
	if c.Verb != session.Instruct || strings.Contains(c.Text, "<!--") {
		return
	}
	want := []Command{instruct(c.Text)}
	beside, below := Parse("/ship "+c.Text), Parse("/ship\n"+c.Text)
	if !cmp.Equal(want, beside) && !cmp.Equal(want, below) {
		t.Fatalf("asking %q again gives %+v, or %+v", c.Text, beside, below)
	}
	if _, ok := afterShip(c.Text); ok {
		return // a prompt may begin with one /ship
	}
	if diff := cmp.Diff(want[0], ParseText(c.Text)); diff != "" {
		t.Fatalf("%q as a prompt (-want +got):\n%s", c.Text, diff)
	}
}

func FuzzParseText(f *testing.F) {
	for _, b := range bodies {
		f.Add(b)
	}
	f.Add("> so [repo=o/r]\nyes")
	f.Fuzz(func(t *testing.T, text string) {
		c := ParseText(text)
		checkCommand(t, c)
		if strings.HasPrefix(text, ">") && c.Repo+c.Branch+c.Model != "" {
			t.Errorf("%q: a quotation leads to %+v", text, c)
		}
	})
}

// TestParseQuotation: what somebody quotes at the beginning of a prompt is
// another's, and leads the work nowhere.
func TestParseQuotation(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"> look at this [repo=evil/twin]\n\nyes, do that", ">[repo=evil/twin]", "~~~ [repo=evil/twin]\nx\n~~~\nfix it",
		"<blockquote>x</blockquote> [model=dear]", "/ship > so [branch=other]\nyes",
	} {
		want := Command{Verb: session.Instruct, Text: strings.TrimPrefix(text, "/ship ")}
		if diff := cmp.Diff(want, ParseText(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestParseIsLinear: eight times the input may not take anything near
// sixty-four times as long.
func TestParseIsLinear(t *testing.T) {
	hostile := map[string]string{
		"backticks":     "`` ` ``` ",
		"comments":      "a <!-- ",
		"closed":        "a <!-- --> ",
		"brackets":      "[a=[",
		"groups":        "[repo=o/r] ",
		"commands":      "/ship x\n",
		"list markers":  "- ",
		"nested fences": "```\n````\n",
		"escapes":       "\\`",
		"raw":           "<pre>\n",
		"courtesy":      "please ",
		"paragraph":     "a `b\n",
		"growing rows":  "",
	}
	for name, unit := range hostile {
		small, large := hostileBody(unit, 32<<10), hostileBody(unit, 256<<10)
		// Eight times the small one is as much text as the large one, and whatever
		// else the machine does slows both down alike. If it were quadratic, the large
		// one would take eight times as long.
		eight, one := time.Hour, time.Hour
		for try := 0; try < 20 && (try == 0 || one > 3*eight); try++ {
			eight, one = min(eight, parsing(8, small)), min(one, parsing(1, large))
		}
		if one > 3*eight {
			t.Errorf("%s: %v for 8 times 32 KiB, %v for 256 KiB", name, eight, one)
		}
	}
}

func hostileBody(unit string, size int) string {
	if unit != "" {
		return "/ship " + strings.Repeat(unit, size/len(unit))
	}
	var b strings.Builder
	b.WriteString("/ship ")
	for n := 1; b.Len()+n < size; n++ {
		b.WriteString(strings.Repeat("`", n) + " ")
	}
	return b.String()
}

// parsing is how long it takes to parse a body so many times.
func parsing(times int, body string) time.Duration {
	start := time.Now()
	for range times {
		Parse(body)
	}
	return time.Since(start)
}

func BenchmarkParse(b *testing.B) {
	long := strings.Repeat("Some words about `code`, and more of them.\n\n> quoted\n\n```go\nfunc f() {}\n```\n", 800)
	for name, body := range map[string]string{"none": long, "short": "/ship fix the login", "long": long + "/ship fix"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(body)
			}
		})
	}
}
