package slack

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestMrkdwn(t *testing.T) {
	t.Parallel()
	// | stands for the joint that cannot be seen
	for name, tt := range map[string]struct{ markdown, want string }{
		"styles":              {"**b** _i_ *i* ~~s~~ `c` ***both***", "*b* _i_ _i_ ~s~ `c` *_both_*"},
		"heading":             {"# One\n\nTwo\n---\n\n### Three *four* #", "*One*\n\n*Two*\n\n*Three* *_four_*"},
		"within words":        {"foo**bar**baz, 漢**字**漢, (**x**).", "foo|*bar*|baz, 漢|*字*|漢, (*x*)."},
		"next to each other":  {"**a**_b_`c`", "*a*|_b_|`c`"},
		"over lines":          {"**one\ntwo**", "*one*\n*two*"},
		"not by space":        {"**`a` **b", "|*||*||`a` |*||*|b"},
		"literal marks":       {`\*no\* \_no\_ \~no~ 2 * 3 a_b_c 1*2`, "|*|no|*| |_|no|_| |~|no|~| 2 * 3 a_b_c 1*2"},
		"literal ticks":       {"\\`no\\` ``a`b``", "‵no‵ `a‵b`"},
		"escapes":             {"a < b && c > d &amp; &lt;", "a &lt; b &amp;&amp; c &gt; d &amp; &lt;"},
		"escapes in code":     {"`a<b>&c` and\n\n    <!here> &amp;", "`a&lt;b&gt;&amp;c` and\n\n```\n&lt;!here&gt; &amp;amp;\n```"},
		"called":              {"<!here> <!channel|x> <@U1> <#C1|x> <!subteam^S1> <!date^1^{date}|x>", "&lt;!here&gt; &lt;!channel|x&gt; &lt;@|U1&gt; &lt;#C1|x&gt; &lt;!subteam^S1&gt; &lt;!date^1^{date}|x&gt;"},
		"called by entity":    {"&lt;!here&gt; &#60;@U1&#62;", "&lt;!here&gt; &lt;@|U1&gt;"},
		"called plainly":      {"@here @channel, @ada: a@b.c", "@|here @|channel, @|ada: a@b.c"},
		"called in code":      {"`@here` `@ada`\n\n```\n@channel @ada\n```", "`@|here` `@ada`\n\n```\n@|channel @ada\n```"},
		"links":               {"[a](https://b.c/?d=1&e=2 \"t\") <https://f.g> https://h.i/j_k. www.l.com [m][1]\n\n[1]: http://n.o", "<https://b.c/?d=1&amp;e=2|a> <https://f.g> <https://h.i/j_k>. <http://www.l.com|www.l.com> <http://n.o|m>"},
		"styled link":         {"**[a `b` _c_](https://d.e)**", "*<https://d.e|a b c>*"},
		"label of a link":     {"[a|b <!here> @here > \\*](https://c.d)", "<https://c.d|a¦b &lt;!here&gt; @|here &gt; |*|>"},
		"links that are none": {"[a](javascript:alert(1)) [b](docs/c.md) [d](!here) [e](slack://x) [f](https://) [g](<https://h.i|!here>) [j](https://k@l.m)", "a b d e f g j"},
		"deceptive links":     {"[https://github.com](https://evil.example) [github.com/a](https://evil.example/github.com/a) [github.com/a](https://github.com/a/)", "<https://evil.example> <https://evil.example/github.com/a> <https://github.com/a/|github.com/a>"},
		"deceptive words":     {"[see github.com/a](https://evil.example) [github.com\u200b/a](https://evil.example) [ｇithub．com](https://evil.example) [log in at https://github.com](https://evil.example) [github.com:443](https://evil.example)", "<https://evil.example> <https://evil.example> <https://evil.example> <https://evil.example> <https://evil.example>"},
		"honest words":        {"[see github.com](https://github.com/a) [main.go](https://github.com/a/main.go) [on www.a.com](http://a.com) [a@b.com](mailto:a@b.com)", "<https://github.com/a|see github.com> <https://github.com/a/main.go|main.go> <http://a.com|on www.a.com> <mailto:a@b.com|a@b.com>"},
		"mail":                {"[write](mailto:a@b.c) <a@b.c> d@e.com", "<mailto:a@b.c|write> a@b.c d@e.com"},
		"images":              {"![a cat](https://b.c/d.png) ![](https://b.c/d.png)", "<https://b.c/d.png|a cat> <https://b.c/d.png>"},
		"lists":               {"- a\n- b\n  1. c\n  2. d\n- [x] e\n- [ ] f\n\n7) g\n8) h", "• a\n• b\n    1. c\n    2. d\n☑ e\n☐ f\n\n7. g\n8. h"},
		"loose list":          {"- a\n\n  more\n  of it\n\n- b", "• a\n\n   more\n   of it\n\n• b"},
		"quotation":           {"> a\n> **b**\n>\n> - c\n\nd", "> a\n> *b*\n\n> • c\n\nd"},
		"no quotation":        {"\\> a\n&gt; b", "|&gt; a\n|&gt; b"},
		"code in a list":      {"- a\n  ```sh\n  b\n    c\n  ```\n- d", "• a\n```\nb\n  c\n```\n• d"},
		"fence in a fence":    {"````md\n```\na\n```\n````", "```\n`|`|`\na\n`|`|`\n```"},
		"open fence":          {"~~~\na", "```\na\n```"},
		"table":               {"| a | b |\n|---|--:|\n| **c** | `d\\|e` |\n| long one | [f](https://g.h) |\n| i |", "```\na         b\n────────  ───\nc         d|e\nlong one  f\ni         \n```"},
		"rule":                {"a\n\n***\n\nb", "a\n\n──────────\n\nb"},
		"html":                {"a<br>b <b>c</b>\n\n<div>\n<!-- d -->\n</div>", "a\nb &lt;b&gt;c&lt;/b&gt;\n\n&lt;div&gt;\n&lt;!-- d --&gt;\n&lt;/div&gt;"},
		"what is not seen":    {"a\x00\u202eb\ufeff\r\nc\u2028d\xff", "ab\nc\nd\ufffd"},
		"only a definition":   {"[a]: https://b.c", "[a]: https://b.c"},
		"nothing":             {" \n\n ", "…"},
		"only a joint":        {"\u200b", "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.ReplaceAll(strings.Join(mrkdwn(tt.markdown, minRoom), "\n--\n"), joint, "|")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var (
	// ourLink is the only thing that may stand in angle brackets.
	ourLink  = regexp.MustCompile(`<(?:https?://|mailto:)[^<>|\s]+(?:\|[^<>|\n]+)?>`)
	ourQuote = regexp.MustCompile(`(?m)^> `)
	ourCode  = regexp.MustCompile("(?s)```\n(.+?)\n```|`[^`\n]+`")
	entities = regexp.MustCompile(`&(?:amp|lt|gt);`)
	calling  = regexp.MustCompile(`(?i)@(?:here|channel|everyone|group)\b`)
	anybody  = regexp.MustCompile(`(^|[^\pL\d_])@[\pL\d]`) // a mark of ours may be a _
)

// inertText checks that a text of ours does nothing in Slack.
func inertText(t *testing.T, text string) {
	t.Helper()
	rest := ourQuote.ReplaceAllString(entities.ReplaceAllString(text, "+"), "")
	labels := ourLink.ReplaceAllStringFunc(rest, func(l string) string {
		_, label, _ := strings.Cut(strings.Trim(l, "<>"), "|")
		return label
	})
	if strings.ContainsAny(labels, "<>&") || calling.MatchString(labels) {
		t.Errorf("something is left that Slack reads:\n%q\nof\n%q", labels, text)
	}
	prose := ourCode.ReplaceAllString(labels, "")
	if strings.Contains(prose, "`") || anybody.MatchString(prose) {
		t.Errorf("code is left open, or somebody called:\n%q\nof\n%q", prose, text)
	}
	if !utf8.ValidString(text) || strings.Count(text, fence)%2 != 0 || strings.TrimFunc(text, blank) == "" {
		t.Errorf("not a text: %q", text)
	}
}

// letters are what may not be lost when a text is divided.
func letters(texts []string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, entities.ReplaceAllString(ourLinkAddress.ReplaceAllString(strings.Join(texts, ""), ""), ""))
}

var ourLinkAddress = regexp.MustCompile(`<[^<>|\s]+\|?`)

func FuzzMrkdwn(f *testing.F) {
	for _, seed := range []string{
		longAnswer, "<!channel> <@U1> @here &lt;!here&gt; `<!here>`", "```\n<!here>\n", "[a](<https://b|c>)", "[<!here>](https://a.b)", "**a *b** c*", "> > - 1. a\n\n\tb",
		"|a|b|\n|-|-|\n|<!here>|`|`|", "![`](https://a.b/`)", "\\`\\`\\`\n<!here>\n\\`\\`\\`", "&#60;!here&#62;", "<https://a.b/@here|x>", "a\u2028> b", "`` ` ``", "*\u200b*", "~~~\n```\n~~~", "<a@b.c>", "https://@here", "a@here", "@`",
	} {
		f.Add(seed, 1)
		f.Add(seed, 300)
	}
	f.Fuzz(func(t *testing.T, text string, times int) {
		text = strings.Repeat(text, min(max(times, 1), 2*minRoom/max(len(text), 1)+1))
		small, large := mrkdwn(text, minRoom), mrkdwn(text, 1<<20)
		for _, piece := range small {
			inertText(t, piece)
			if n := length(piece); n > minRoom {
				t.Errorf("%d characters", n)
			}
		}
		if len(large) != 1 {
			t.Fatalf("%d pieces of what has room in one", len(large))
		}
		inertText(t, large[0])
		if !strings.Contains(large[0], "://") && letters(small) != letters(large) { // a link may be there twice
			t.Errorf("divided, it says\n%q\nand whole\n%q", small, large)
		}
	})
}

// endless is for machines with much else to do: what is told takes some tenths
// of a second here at most, and takes minutes where it grows without bounds.
const endless = time.Minute

// TestTime: no text takes long, however odd.
func TestTime(t *testing.T) {
	t.Parallel()
	odd := map[string]string{
		"wide table": strings.Repeat("|a", 2000) + "|\n" + strings.Repeat("|-", 2000) + "|\n" + strings.Repeat("|\n", 4000),
	}
	for _, unit := range []string{
		"*a ", "**a* ", "_a*b ", "[", "[a](", "[a](b", "`a``", "<!--", "> ", ">\n- ", "1. ", "&amp", "http://a.b/(", "a@b.", "[x][", "[a]\n", "| a |\n|--", "<a href=\"", "a\t", "😀",
	} {
		odd[unit] = strings.Repeat(unit, 1<<18/len(unit))
	}
	for name, text := range odd {
		begun := time.Now()
		mrkdwn(text, minRoom)
		if took := time.Since(begun); took > endless {
			t.Errorf("%q took %v", name, took)
		}
	}
}
