package lifecycle

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated parts of docs/lifecycle.md anew")

const doc = "../../docs/lifecycle.md"

// TestDoc: what docs/lifecycle.md shows is what the code does.
func TestDoc(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	want := string(b)
	for name, text := range map[string]string{"picture": picture(), "table": grid(), "limits": limits(), "numbers": numbers()} {
		want = replace(t, want, name, text)
	}
	if *update {
		if err := os.WriteFile(doc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("%s is not up to date; run go test ./sandbox/lifecycle -run TestDoc -update (-want +got):\n%s", doc, diff)
	}
}

// replace puts text between the marks of a generated part.
func replace(t *testing.T, all, name, text string) string {
	t.Helper()
	begin := fmt.Sprintf("<!-- %s: made by go test ./sandbox/lifecycle -run TestDoc -update -->\n", name)
	end := fmt.Sprintf("<!-- /%s -->", name)
	before, rest, ok := strings.Cut(all, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has lost the marks of %q", doc, name)
	}
	return before + begin + "\n" + text + "\n" + end + after
}

// picture is the table as a diagram: every way from one state to another, but
// for those that all states have, which are said in words.
func picture() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> creating\n")
	for _, from := range States() {
		for _, to := range States() {
			if events := ways(from, to); len(events) > 0 {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", from, to, strings.Join(events, ", "))
			}
		}
	}
	b.WriteString("    destroyed --> [*]\n```\n\n")
	b.WriteString("Not drawn, because it may happen in every state but *destroyed*: **destroy asked** leads to *destroying*.\n")
	return b.String()
}

// ways are the events that lead from one state to another.
func ways(from, to State) (events []string) {
	for _, tr := range table() {
		everywhere := tr.on == DestroyAsked && from != Lost // one is drawn, so that the end is not in the air
		if tr.from == from && tr.to == to && from != to && !everywhere {
			events = append(events, string(tr.on))
		}
	}
	return events
}

// grid is the whole table: a dot where nothing changes, empty what is refused.
func grid() string {
	var b strings.Builder
	b.WriteString("| event |")
	for _, s := range States() {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(States())) + "\n")
	for _, e := range Events() {
		fmt.Fprintf(&b, "| %s |", e)
		for _, s := range States() {
			to, err := Next(s, e)
			switch {
			case err != nil:
				b.WriteString(" |")
			case to == s:
				b.WriteString(" · |")
			default:
				fmt.Fprintf(&b, " %s |", to)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// limits are those of the default policy.
func limits() string {
	var b strings.Builder
	b.WriteString("| limit | default |\n|---|---|\n")
	for _, d := range Default().durations() {
		fmt.Fprintf(&b, "| %s | %s |\n", d.name, words(d.of))
	}
	return b.String()
}

// numbers says what a day costs under some policies.
func numbers() string {
	var b strings.Builder
	b.WriteString("| idle pause | idle destroy | cap | box hours per busy hour | with short turns | woken | begun anew |\n|---|---|---|---|---|---|---|\n")
	for _, p := range policies() {
		y, z := day(p, usual(), days), day(p, short(), days)
		mark := ""
		if p == Default() {
			mark = "**"
		}
		fmt.Fprintf(&b, "| %[1]s%[2]s%[1]s | %[1]s%[3]s%[1]s | %[4]s | %[1]s%.2[5]f%[1]s | %.2[6]f | %.0[7]f | %.0[8]f |\n",
			mark, words(p.IdlePause), words(p.IdleDestroy), words(p.Cap), y.ratio(), z.ratio(), y.of(y.woken), y.of(y.rebuilt))
	}
	return b.String()
}

// words is a duration as people write it.
func words(d time.Duration) string {
	switch {
	case d == 0:
		return "never"
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// TestPicture: every way there is is drawn or said.
func TestPicture(t *testing.T) {
	t.Parallel()
	text := picture()
	for _, tr := range table() {
		if tr.from == tr.to || tr.on == DestroyAsked {
			continue
		}
		lines := strings.Split(text, "\n")
		if !slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, fmt.Sprintf("    %s --> %s: ", tr.from, tr.to)) && strings.Contains(l, string(tr.on))
		}) {
			t.Errorf("%+v is not drawn", tr)
		}
	}
}
