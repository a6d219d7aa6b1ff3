package turn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox/agent"
	"ship/session"
)

func choices(values ...string) (out []session.Choice) {
	for _, v := range values {
		out = append(out, session.Choice{Value: v})
	}
	return out
}

func TestParseQuestion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message, rest string
		want          session.Question
	}{
		"with options": {
			message: "I did half.\n\n```ask\nWhich store?\n- Redis\n- Postgres\n```\n", rest: "I did half.",
			want: session.Question{Text: "Which store?", Choices: choices("Redis", "Postgres")},
		},
		"without options":  {message: "```ask\nWhat is it called?\n```", want: session.Question{Text: "What is it called?"}},
		"several lines":    {message: "x\n~~~ ask \nOne.\n\nTwo?\n\n- a\n\n- b\n~~~", rest: "x", want: session.Question{Text: "One.\n\nTwo?", Choices: choices("a", "b")}},
		"line ends of DOS": {message: "x\r\n```ask\r\nWhich?\r\n- a\r\n- b\r\n```\r\n", rest: "x", want: session.Question{Text: "Which?", Choices: choices("a", "b")}},
		"after other blocks": {
			message: "```go\nx()\n```\n```ask\nold?\n```\n````ask\nnew?\n````", rest: "```go\nx()\n```\n```ask\nold?\n```", want: session.Question{Text: "new?"},
		},
	} {
		q, rest, ok := parseQuestion(c.message)
		if !ok || rest != c.rest {
			t.Errorf("%s: %v, rest %q", name, ok, rest)
		}
		if diff := cmp.Diff(c.want, q); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestWhatIsNoQuestionStaysText(t *testing.T) {
	t.Parallel()
	block := func(lines ...string) string { return "x\n```ask\n" + strings.Join(lines, "\n") + "\n```" }
	for name, message := range map[string]string{
		"nothing":               "",
		"no block":              "Which one?",
		"another block":         "```go\nWhich?\n```",
		"not the last":          block("Which?") + "\nThat is all.",
		"not closed":            "```ask\nWhich?",
		"closed by another":     "```ask\nWhich?\n~~~",
		"quoted in a block":     "````md\n```ask\nWhich?\n```\n````",
		"the end of a block":    "````md\n```ask\nWhich?\n```",
		"more than the info":    "```ask me\nWhich?\n```",
		"empty":                 block(),
		"only options":          block("- a", "- b"),
		"one option":            block("Which?", "- a"),
		"seven options":         block("Which?", "- a", "- b", "- c", "- d", "- e", "- f", "- g"),
		"the same option twice": block("Which?", "- a", "- a"),
		"an empty option":       block("Which?", "- a", "-  "),
		"words after options":   block("Which?", "- a", "- b", "or so"),
		"a long option":         block("Which?", "- a", "- "+strings.Repeat("b", maxOption+1)),
		"a long question":       block(strings.Repeat("?", maxQuestion+1)),
		"a control character":   block("Which?\a"),
		"reading turned around": block("Which?", "- a", "- b\u202etxt"),
		"no text at all":        block("Which?", "- a", "- \xff"),
	} {
		if q, rest, ok := parseQuestion(message); ok || rest != message || q.Text != "" || q.Choices != nil {
			t.Errorf("%s: %+v, rest %q", name, q, rest)
		}
	}
}

func FuzzParseQuestion(f *testing.F) {
	for _, seed := range []string{
		"x\n```ask\nWhich?\n- a\n- b\n```", "~~~ask\nWhich?\n~~~\n", "````\n```ask\n?\n```\n````", "```ask\n- a\n- b\n```", "```ask\r\nq\r\n```", "- ```ask\n\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		q, rest, ok := parseQuestion(message)
		plain := strings.ReplaceAll(message, "\r\n", "\n")
		if !ok {
			if rest != plain || q.Text != "" || q.Choices != nil {
				t.Fatalf("no question, and yet %+v, %q", q, rest)
			}
			return
		}
		if len(rest) >= len(plain) || !strings.Contains(plain, rest) {
			t.Errorf("rest %q of %q", rest, plain)
		}
		if q.Text == "" || len(q.Text) > maxQuestion || len(q.Choices) == 1 || len(q.Choices) > maxOptions {
			t.Errorf("question %+v", q)
		}
		for _, c := range q.Choices {
			if c.Value == "" || len(c.Value) > maxOption || strings.ContainsAny(c.Value, "\n\r\t") {
				t.Errorf("option %q", c.Value)
			}
		}
	})
}

// TestOnlyWorkThatIsCompletedAsks: a turn that was cut off asks nothing, and
// what it said is kept as it is.
func TestOnlyWorkThatIsCompletedAsks(t *testing.T) {
	t.Parallel()
	const said = "Half is done.\n```ask\nWhich?\n- a\n- b\n```"
	for ending, asks := range map[agent.Ending]bool{agent.Completed: true, agent.Stopped: false, agent.Spent: false} {
		o := outcomeOf(agent.Result{Ending: ending, Answer: said})
		if (o.Question != nil) != asks || strings.Contains(o.Answer, "```ask") == asks {
			t.Errorf("%s: %+v", ending, o)
		}
	}
}
