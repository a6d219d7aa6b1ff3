package bot

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

func instruct(text string) Command { return Command{Verb: session.Instruct, Text: text} }

func TestParse(t *testing.T) {
	t.Parallel()
	type commands []Command
	tests := []struct {
		name, body string
		want       commands
	}{
		{"nothing", "", nil},
		{"no command", "Ship it! See https://x.test/ship and a/ship.", nil},
		{"bare", "/ship", commands{{}}},
		{"bare among text", "Looks good.\n\n/ship\n", commands{{}}},
		{"instruction", "/ship fix the login", commands{instruct("fix the login")}},
		{"any case", "/Ship fix\n/SHIP stop", commands{instruct("fix"), {Verb: session.Stop}}},
		{"three spaces", "   /ship fix", commands{instruct("fix")}},
		{"unicode spaces", "\u00a0\u3000/ship\u00a0fix\u2003it", commands{instruct("fix\u2003it")}},
		{"next line", "/ship\nfix it", commands{instruct("fix it")}},
		{"runs on", "/ship fix\n\nthis:\n\n- a\n- b\n", commands{instruct("fix\n\nthis:\n\n- a\n- b")}},
		{"until the next", "/ship fix\nthis\n /ship status", commands{instruct("fix\nthis"), {Verb: session.Status}}},
		{"CRLF", "Hi\r\n/ship fix\r\nthis\r\n/ship stop\r\n", commands{instruct("fix\nthis"), {Verb: session.Stop}}},
		{"lone CR", "a\r/ship stop\rb", commands{{Verb: session.Stop}}},
		{"broken UTF-8", "/ship a\xffb", commands{instruct("a\uFFFDb")}},

		{"another word", "/shipping\n/ship-it\n/ship/x\n/ships\n/ship.\n/ship:x", nil},
		{"not at the start", "please /ship it\n- /ship it\n# /ship it\n**/ship**", nil},
		{"no-break look-alike", "/ship\u200bstop", nil},

		{"quoted", "> /ship stop\n>/ship stop\n  > /ship stop", nil},
		{"below a quotation", "> shall we?\n/ship yes", commands{instruct("yes")}},
		{"quotation in a list", "- > /ship a\n  > /ship b", nil},
		{"quotation belongs to it", "/ship answer\n> why?\n", commands{instruct("answer\n> why?")}},
		{"indented", "    /ship a\n\t/ship b\n  \t/ship c", nil},
		{"indented below text", "text\n    /ship a", nil},

		{"fence", "```\n/ship a\n```", nil},
		{"after a fence", "```\n/ship a\n```\n/ship b", commands{instruct("b")}},
		{"tildes", "~~~ sh `x`\n/ship a\n```\n/ship b\n~~~\n/ship c", commands{instruct("c")}},
		{"long fence", "````\n```\n/ship a\n```\n/ship b\n`````  \n/ship c", commands{instruct("c")}},
		{"fence with words does not close", "```\nx\n``` no\n/ship a", nil},
		{"info string with a backtick is no fence", "``` a`b\n/ship c", commands{instruct("c")}},
		{"indented fence", "   ```\n/ship a\n    ```\n/ship b\n   ```\n/ship c", commands{instruct("c")}},
		{"no fence at four", "    ```\n/ship a", commands{instruct("a")}},
		{"never closed", "```\n/ship a\n\n/ship b", nil},
		{"fence in a list", "- ```\n  /ship a\n  ```\n/ship b", commands{instruct("b")}},
		{"fence in a numbered list", "10. ```\n    x\n    ```\n/ship b", commands{instruct("b")}},
		{"a list ends its fence", "1. - ```\n/ship b", commands{instruct("b")}},
		{"fence in a quotation stays there", "> ```\n/ship a", commands{instruct("a")}},
		{"code belongs to it", "/ship fix this\n```\npanic\n/ship not\n```\nnow", commands{instruct("fix this\n```\npanic\n/ship not\n```\nnow")}},
		{"fence after a rule", "***\n```\n/ship a\n```", nil},

		{"code span", "see `foo\n/ship a` there", nil},
		{"code span of two", "see ``foo ` bar\n/ship a`` there", nil},
		{"a row without an end", "a ` b\n/ship c", commands{instruct("c")}},
		{"spans end with the paragraph", "a ` b\n\n/ship c `d`", commands{instruct("c `d`")}},
		{"spans end with a heading", "# a ` b\n/ship c `d`", commands{instruct("c `d`")}},
		{"spans end with a rule", "a ` b\n---\n/ship c `d`", commands{instruct("c `d`")}},
		{"spans end with an item", "- a ` b\n- c\n\n/ship c `d`", commands{instruct("c `d`")}},
		{"span through an indented line", "a `b\n      c\n/ship d`", nil},
		{"escaped backtick", "a \\`b\n/ship c`", commands{instruct("c`")}},
		{"own code span", "/ship run `go test`", commands{instruct("run `go test`")}},

		{"comment", "<!--\n/ship a\n-->\n/ship b", commands{instruct("b")}},
		{"comment on one line", "<!-- x -->\n/ship b", commands{instruct("b")}},
		{"comment over a blank line", "<!--\n\n/ship a\n\n-->", nil},
		{"comment in a paragraph", "hello <!--\n/ship a\n--> world", nil},
		{"comment without an end", "<!--\n/ship a", nil},
		{"two comments", "<!-- a --> <!--\n/ship b\n--> \n/ship c", commands{instruct("c")}},
		{"comment in a list", "- <!--\n\n  /ship a\n  -->\n/ship b", commands{instruct("b")}},
		{"short comment", "<!-->\n/ship b", commands{instruct("b")}},
		{"comment mark in code", "`<!--`\n/ship b", commands{instruct("b")}},
		{"unended comment in a paragraph", "a <!--\n/ship b", commands{instruct("b")}},
		{"comments are not said", "/ship fix <!-- and leak -->it\n<!--\nall\n-->\nnow", commands{instruct("fix  it\n \nnow")}},
		{"stop beside a comment", "/ship stop <!-- x -->", commands{{Verb: session.Stop}}},
		{"comment in code is said", "/ship use\n```\n<!-- x -->\n```", commands{instruct("use\n```\n<!-- x -->\n```")}},
		{"raw elements", "<pre>\n/ship a\n</pre>\n<CODE class=x>\n/ship b\n</Code>\n<blockquote>\n\n/ship c\n</blockquote>", nil},
		{"raw element on one line", "<code>x</code>\n/ship b", commands{instruct("b")}},
		{"details show their text", "<details>\n\n/ship b", commands{instruct("b")}},
		{"other declarations", "<? /\n/ship a\n?>\n<![CDATA[\n/ship b\n]]>", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff([]Command(tt.want), Parse(tt.body)); diff != "" && len(tt.want)+len(Parse(tt.body)) > 0 {
				t.Errorf("Parse(%q) (-want +got):\n%s", tt.body, diff)
			}
		})
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	verb := func(v session.Verb) Command { return Command{Verb: v} }
	model := func(name string) Command { return Command{Verb: session.Model, Text: name} }
	budget := func(usd string) Command { return Command{Verb: session.Budget, Text: usd} }
	tests := []struct {
		text string
		want Command
	}{
		{"", Command{}},
		{"/ship", Command{}},
		{"/ship  stop", verb(session.Stop)},
		{"stop", verb(session.Stop)},
		{"Stop!", verb(session.Stop)},
		{"STOP...", verb(session.Stop)},
		{"stop please", verb(session.Stop)},
		{"Please, stop now.", verb(session.Stop)},
		{"stop\n\nsorry, wrong issue", verb(session.Stop)},
		{"stop the server when the tests end", instruct("stop the server when the tests end")},
		{"retry", verb(session.Retry)},
		{"retry, please", verb(session.Retry)},
		{"retry\nbut with v2", instruct("retry\nbut with v2")},
		{"retry the request three times", instruct("retry the request three times")},
		{"status?", verb(session.Status)},
		{"help", verb(session.Help)},
		{"help me", instruct("help me")},
		{"ready", verb(session.Ready)},
		{"ready the docs for release", instruct("ready the docs for release")},
		{"please", instruct("please")},
		{"fix\nstop", instruct("fix\nstop")},

		{"model gpt-5", model("gpt-5")},
		{"Model anthropic/claude-opus-4.1:thinking", model("anthropic/claude-opus-4.1:thinking")},
		{"model gpt-5 please", model("gpt-5")},
		{"model gpt-5.", model("gpt-5")},
		{"model the data in SQL", instruct("model the data in SQL")},

		{"budget 10", budget("10")},
		{"budget 2.50", budget("2.5")},
		{"budget .5", budget("0.5")},
		{"budget $5", budget("5")},
		{"budget 5$", budget("5")},
		{"budget $ 5", budget("5")},
		{"budget 5 usd", budget("5")},
		{"budget 5 USD.", budget("5")},
		{"budget USD 5", budget("5")},
		{"budget 5 dollars please", budget("5")},
		{"budget 10000", budget("10000")},
		{"budget the work carefully", instruct("budget the work carefully")},

		{"repo octo/hello", Command{Repo: "octo/hello"}},
		{"repo cleanup is due", instruct("repo cleanup is due")},

		{"[repo=o/r branch=x model=m] fix", Command{session.Instruct, "fix", "o/r", "x", "m"}},
		{"fix it [repo=o/r] [branch=feature/x]", Command{session.Instruct, "fix it", "o/r", "feature/x", ""}},
		{"[MODEL=m] fix [Repo=o/r]\nmore [model=n]", Command{session.Instruct, "fix\nmore [model=n]", "o/r", "", "m"}},
		{"[model=m]", Command{Model: "m"}},
		{"[model=m]\nfix it", Command{session.Instruct, "fix it", "", "", "m"}},
		{"stop [repo=o/r]", Command{Verb: session.Stop, Repo: "o/r"}},
		{"fix [WIP]", instruct("fix [WIP]")},
		{"[ ] tick the box", instruct("[ ] tick the box")},
		{"fix list[i=0]", instruct("fix list[i=0]")},
		{"fix [the repo=x thing] now", instruct("fix [the repo=x thing] now")},
		{"see [docs](https://x.test/?a=b)", instruct("see [docs](https://x.test/?a=b)")},
		{"[", instruct("[")},
		{"]", instruct("]")},
		{"[]", instruct("[]")},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, ParseText(tt.text)); diff != "" {
				t.Errorf("ParseText(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestUnclear(t *testing.T) {
	t.Parallel()
	tests := map[string]string{ // text: what the sentence must say
		"model":                       "/ship model NAME",
		"model -x":                    "/ship model NAME",
		"model gpt-5\nfix the tests":  "has to stand alone",
		"budget":                      "/ship budget 10",
		"budget lots":                 "/ship budget 10",
		"budget 0":                    "/ship budget 10",
		"budget -5":                   "/ship budget 10",
		"budget NaN":                  "/ship budget 10",
		"budget Inf":                  "/ship budget 10",
		"budget 1e309":                "/ship budget 10",
		"budget 10001":                "up to 10000",
		"budget 0.0":                  "above 0",
		"budget 99999999999999999999": "up to 10000",
		"budget 5 and fix the tests":  "one number",
		"budget 5\nand fix the tests": "has to stand alone",
		"repo":                        "/ship repo OWNER/NAME",
		"repo x":                      "/ship repo OWNER/NAME",
		"repo o/r fix it":             "[repo=OWNER/NAME]",
		"repo o/r\nfix it":            "has to stand alone",
		"[repo=o/r] repo a/b":         "twice",
		"[colour=red] fix":            "I do not know the option `colour`. The options are `[repo=OWNER/NAME",
		"[repo=o/r,x=\u202e] fix":     "`repo` is not a name",
		"[model=m @everyone=1] fix":   "that I do not know",
		"[repo=o/r please] fix":       "name=value",
		"[repo=o/r] fix [repo=o/q]":   "given twice",
		"[repo=o] fix":                "`repo`",
		"[repo=o/..] fix":             "`repo`",
		"[repo=../etc/passwd] fix":    "`repo`",
		"[repo=o/x.git] fix":          "`repo`",
		"[branch=a..b] fix":           "git allows",
		"[branch=] fix":               "git allows",
		"[model=$(id)] fix":           "`model`",
		"[model=" + strings.Repeat("m", 200) + "]": "`model`",
	}
	for text, say := range tests {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			c := ParseText(text)
			if c.Verb != session.Unclear || !strings.Contains(c.Text, say) {
				t.Errorf("ParseText(%q) = %+v, want Unclear with %q", text, c, say)
			}
			if c.Repo+c.Branch+c.Model != "" {
				t.Errorf("ParseText(%q) kept options: %+v", text, c)
			}
		})
	}
}

// TestBranchNames holds validBranch to git's own answer.
func TestBranchNames(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	names := []string{
		"main", "feature/x", "a.b", "a-b_c", "ü", "x@y", "a}b", "a{b", "a@", "@a", "x/@", "UPPER", "a#b", "a$b", "a'b", "a!b", "a=b",
		"", "HEAD", "-x", "a..b", "a.", "a/", "/a", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a b", "a~b", "a^b",
		"a:b", "a?b", "a*b", "a[b", `a\b`, "a@{b", "a\tb", "a\x7fb", "a\x01b", "a/b.", "x.lockx",
	}
	if validBranch("@") {
		t.Error("@ is HEAD by another name") // which --branch expands
	}
	for _, name := range names {
		want := exec.CommandContext(t.Context(), git, "check-ref-format", "--branch", name).Run() == nil
		if got := validBranch(name); got != want {
			t.Errorf("validBranch(%q) = %v, git says %v", name, got, want)
		}
	}
}

func TestManyCommands(t *testing.T) {
	t.Parallel()
	got := Parse(strings.Repeat("/ship fix\n", 50))
	if len(got) != maxCommands {
		t.Fatalf("%d commands, want %d", len(got), maxCommands)
	}
	if got[maxCommands-1].Text != "fix" {
		t.Errorf("the last one is %q: it runs into the next", got[maxCommands-1].Text)
	}
}
