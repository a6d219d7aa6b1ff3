package slack

import (
	"testing"

	"ship/session"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                             "",
		"a &lt;b&gt; &amp;amp; c":                      "a <b> &amp; c",
		"&amp;lt;":                                     "&lt;",
		"see <https://a.example/x?a=1&amp;b=2>":        "see https://a.example/x?a=1&b=2",
		"<https://a.example|the page>":                 "[the page](https://a.example)",
		"<http://a.example|a.example>":                 "a.example",
		"<https://a.example|https://a.example>":        "https://a.example",
		"<mailto:ada@a.example|ada@a.example>":         "ada@a.example",
		"<mailto:ada@a.example>":                       "ada@a.example",
		"ask <@U123> or <@U123|ada>":                   "ask @U123 or @ada",
		"in <#C123|general> and <#C123|>":              "in #general and #C123",
		"<!here> <!subteam^S1|@devs> <!subteam^S1>":    "@here @devs @S1",
		"<!date^1795000000^{date}^https://a.b|Nov 18>": "Nov 18",
		"<!channel|channel>":                           "@channel",
		"<>":                                           "<>",
		"<":                                            "<",
		"*bold* `code` ```x &lt; y```":                 "*bold* `code` ```x < y```",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestAddressed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, user, want string }{
		{"<@UBOT> fix it", "UBOT", "fix it"},
		{"  <@UBOT|ship>, fix it", "UBOT", "fix it"},
		{"<@UBOT>: fix it", "UBOT", "fix it"},
		{"<@UBOT>", "UBOT", ""},
		{"<@UBOT>\nfix it", "UBOT", "fix it"},
		{"hey <@UBOT> fix it", "UBOT", "hey fix it"},
		{"please stop <@UBOT>", "UBOT", "please stop"},
		{"a\n<@UBOT> fix it", "UBOT", "a\nfix it"},
		{"<@UBOT> <@UBOT> fix it", "UBOT", "fix it"},
		{"<@UBOT> ask <@UBOTX> and <@U2>", "UBOT", "ask <@UBOTX> and <@U2>"},
		{"<@UBOT", "UBOT", "<@UBOT"},
		{"<@UBOT <@UBOT> x", "UBOT", "<@UBOT x"},
		{"<@UBOT> fix it", "", "fix it"},
		{" <@UANY|x>, fix <@U2>", "", "fix <@U2>"},
		{"fix <@U2>", "", "fix <@U2>"},
		{"", "", ""},
	} {
		if got := addressed(tt.in, tt.user); got != tt.want {
			t.Errorf("%q to %q is %q, want %q", tt.in, tt.user, got, tt.want)
		}
	}
}

// TestQuotedMention: beside one that is quoted, a mention is as good as any.
func TestQuotedMention(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"<@UBOT> fix it":                         true,
		"&gt; <@UBOT> fix it":                    false,
		"&gt; <@UBOT> fix it\n<@UBOT> yes":       true,
		"a &gt; b, <@UBOT>":                      true,
		"a\n&gt;&gt;&gt;b\n\n<@UBOT> fix it":     false,
		"<@UBOT> see:\n&gt;&gt;&gt;b\n<@UBOT> x": true,
	} {
		if got := mentions(text, "UBOT"); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// TestOptionsInCode: nothing in code is an option, even where the code begins in
// the middle of a line.
func TestOptionsInCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"see ```x [repo=evil/twin]\ny```":                          "",
		"```x [repo=evil/twin]\ny```":                              "",
		"`[repo=evil/twin]`":                                       "",
		"see `x` and ```y``` [repo=acme/api]\nz":                   "acme/api",
		"[repo=acme/api] see ```x [branch=evil]\ny```":             "acme/api",
		"> fix [repo=evil/twin]\nyes":                              "",
		"fix ```x``` ```y [repo=evil/twin]\n``` [repo=evil/twins]": "",
	} {
		if got := parse(text); got.Verb != session.Instruct || got.Repo != want || got.Branch != "" {
			t.Errorf("%q asks for %+v", text, got)
		}
	}
}
