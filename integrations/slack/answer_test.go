package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

func blockIDs(t *testing.T, m slacktest.Message) []string {
	t.Helper()
	var blocks []struct {
		ID string `json:"block_id"`
	}
	if err := json.Unmarshal(m.Blocks, &blocks); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, b := range blocks {
		out = append(out, b.ID)
	}
	return out
}

// TestAnswer: the end is a new message, which calls whoever asked and has nothing
// to press but the way to the work.
func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, fault := range []slacktest.Fault{{}, {On: "chat.postMessage", Lost: true}} {
		f := quiet(t)
		f.Inject(fault)
		j := f.job(session.Answer, over(f.working(), finished()))
		f.do(j)
		f.do(again(j))
		all := f.everywhere()
		if len(all) != 1 || !strings.HasPrefix(all[0].Plain, "@ada\n") || !strings.Contains(all[0].Plain, "The test waits for the server now.") ||
			!slices.Equal(all[0].Controls, []string{"[Open PR -> https://github.com/acme/widgets/pull/7]"}) {
			t.Errorf("%+v", all)
		}
		if !strings.HasPrefix(all[0].Text, "<@"+f.PersonID("ada")+"> ") {
			t.Errorf("notified of %q", all[0].Text)
		}
	}
}

// TestAnswerElsewhere: who reads here need not be allowed to read what was asked
// elsewhere.
func TestAnswerElsewhere(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	s := over(f.working(), finished())
	s.Turn.Requests = slices.Clone(s.Turn.Requests)
	s.Turn.Requests[0].Thread = session.Thread{Platform: "github", Key: "7"}
	f.do(f.job(session.Answer, s))
	if got := f.lines(); len(got) != 1 || strings.Contains(got[0], "waits for the server") || strings.Contains(got[0], "@ada") || !strings.Contains(got[0], "elsewhere") {
		t.Errorf("it reads %q", got)
	}
	s.Turn = nil
	f.do(f.job(session.Answer, s))
	if len(f.lines()) != 1 {
		t.Errorf("it reads %q", f.lines())
	}
}

// TestAnswerAsks: the agent's question has its choices below it, named for the
// turn that it ended.
func TestAnswerAsks(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	o := finished()
	o.Question = &session.Question{Text: "Which one?", Choices: []session.Choice{{Value: "this"}, {Value: "that"}}}
	s := over(f.working(), o)
	f.do(f.job(session.Answer, s))
	m := f.everywhere()[0]
	if !slices.Equal(m.Controls, []string{"[this]", "[that]"}) || !slices.Contains(blockIDs(t, m), blockID(f.TeamID(), "choose-1")) {
		t.Errorf("%+v", m)
	}
	pressed, err := f.Press(slacktest.Change{Channel: "eng", TS: m.TS, By: "bob"}, "that")
	if err != nil {
		t.Fatal(err)
	}
	got, err := newReader(nil, nil).posted(t.Context(), pressed.Body)
	if err != nil || len(got.Deliveries) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if r := got.Deliveries[0].Event.Request; r.Ref != "button/"+m.TS+"/choose-1/"+f.PersonID("bob") || r.Text != "that" {
		t.Errorf("%+v", r)
	}
}

// TestAnswerCalls everybody who asked here, once and not too many, whatever an
// older release kept of them.
func TestAnswerCalls(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	s := over(f.working(), finished())
	add := func(ref string) {
		r := f.asked()
		r.Ref = ref
		s.Turn.Requests = append(s.Turn.Requests, r)
	}
	s.Turn.Requests = nil
	for _, who := range []string{"bob", "ada", "bob"} {
		add("message/1.2/" + f.PersonID(who))
	}
	add("message/1.2")
	add("stop/")
	add("gone")
	for i := range 5 {
		add(fmt.Sprint("message/1.2/U", i))
	}
	f.do(f.job(session.Answer, s))
	if got := f.lines(); !strings.HasPrefix(got[0], "@bob @ada @U0 / ") {
		t.Errorf("it reads %q", got)
	}
}

// TestMentionFits whatever stands below it.
func TestMentionFits(t *testing.T) {
	t.Parallel()
	take := taker(t)
	line := "<@U0000000001> <@U0000000002> <@U0000000003>"
	for n := 2900; n <= 3000; n += 7 {
		for _, text := range []string{strings.Repeat("x", n), strings.Repeat("word ", 4*n/5), "```\n" + strings.Repeat("code\n", n/5) + "```"} {
			all := told(text)
			p := all[0].after(line)
			take(p)
			if len(p.blocks) < len(all[0].blocks) || !strings.Contains(displayed(p), line) {
				t.Errorf("%d: %s", n, displayed(p))
			}
		}
	}
	if got := told("# Done\n\n- yes")[0].after(line); !strings.HasPrefix(displayed(got), "text: "+line+" *Done*") || len(got.blocks) != 1 {
		t.Errorf("%s", displayed(got))
	}
}

// TestLongAnswer is told in several messages, of which only the first calls
// anybody and only the last leads somewhere.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	o := finished()
	o.Answer = strings.Repeat("Say \"this\" & that.\n\n", 500)[:10_000]
	j := f.job(session.Answer, over(f.working(), o))
	f.Inject(slacktest.Fault{On: "chat.postMessage", Skip: 1, Status: 503})
	f.fails(j)
	f.do(again(j))
	f.do(again(j))
	all := f.everywhere()
	if len(all) < 2 {
		t.Fatalf("%d messages", len(all))
	}
	for i, m := range all {
		if strings.Contains(m.Plain, "@ada") != (i == 0) || (len(m.Controls) > 0) != (i == len(all)-1) {
			t.Errorf("message %d reads %q", i+1, m.Plain)
		}
	}
	if n := strings.Count(strings.Join(f.lines(), ""), "Say \"this\" & "); n != 500 {
		t.Errorf("said %d of 500 times", n)
	}
}
