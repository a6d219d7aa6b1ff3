package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/config"
	"ship/integrations/slack/slacktest"
	"ship/session"
	"ship/session/memory"
)

// tamper lets requests through and then answers something else, once, as if
// Slack had done what it was asked for and not said so.
type tamper struct {
	next   http.RoundTripper
	method string
	status int
	body   string
	// err in place of an answer.
	err error
	// cut is taken out of the answer, and with is put in its place.
	cut  *regexp.Regexp
	with string
}

func (x *tamper) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := x.next.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, x.method) || x.method == "" {
		return resp, err
	}
	x.method = ""
	defer resp.Body.Close()
	if x.cut != nil {
		body, err := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(x.cut.ReplaceAll(body, []byte(x.with))))
		return resp, err
	}
	if x.err != nil {
		return nil, x.err
	}
	resp.StatusCode, resp.Body = x.status, io.NopCloser(bytes.NewBufferString(x.body))
	return resp, nil
}

// tampered is the floor seen through that.
func (f *floor) tampered(x tamper) {
	x.next = &http.Transport{DisableKeepAlives: true}
	f.performer = f.gateway(&x)
}

// anew goes on in another process, when what Slack lets us do is renewed.
func (f *floor) anew() {
	f.quota = &memory.Quota{}
	f.performer = f.gateway(&http.Transport{DisableKeepAlives: true})
}

// saying is the job of saying something in the thread.
func (f *floor) saying(text string) session.Job {
	j := f.job(session.Say, f.working())
	j.Effect.Text = text
	return j
}

// works is that of a job, in the middle of it.
func (f *floor) works(j session.Job) *work {
	f.t.Helper()
	w, err := f.performer.begin(j)
	if err != nil {
		f.t.Fatal(err)
	}
	return w
}

// everywhere are all our messages in the channel, in whichever thread.
func (f *floor) everywhere() []slacktest.Message {
	return slices.DeleteFunc(f.Messages(f.thread.channel), func(m slacktest.Message) bool { return m.By != "ship" })
}

func quiet(t *testing.T) *floor {
	t.Helper()
	return newFloor(t, slacktest.Options{Limits: slacktest.NoLimits()})
}

// TestPostsOnce: whatever becomes of the answer, the message is there once.
func TestPostsOnce(t *testing.T) {
	t.Parallel()
	const post = "chat.postMessage"
	for name, tt := range map[string]struct {
		tamper tamper
		fault  slacktest.Fault
		// fails: it is not known to be there, so it is tried again.
		fails bool
		looks int
	}{
		"well":                       {},
		"connection lost":            {fault: slacktest.Fault{On: post, Lost: true}, looks: 1},
		"too late":                   {tamper: tamper{method: post, err: os.ErrDeadlineExceeded}, looks: 1},
		"internal error afterwards":  {tamper: tamper{method: post, status: 200, body: `{"ok":false,"error":"internal_error"}`}, looks: 1},
		"fatal error afterwards":     {tamper: tamper{method: post, status: 200, body: `{"ok":false,"error":"fatal_error"}`}, looks: 1},
		"503 afterwards":             {tamper: tamper{method: post, status: 503, body: "<html>"}, looks: 1},
		"a page":                     {tamper: tamper{method: post, status: 200, body: "<html>"}, looks: 1},
		"half an answer":             {tamper: tamper{method: post, status: 200, body: `{"ok":true,"ts":"17`}, looks: 1},
		"an answer that says little": {tamper: tamper{method: post, status: 200, body: `{"ok":true}`}, looks: 1},
		"a no without a reason":      {tamper: tamper{method: post, status: 200, body: `{"ok":false}`}, looks: 1},
		"no thread named":            {tamper: tamper{method: post, cut: regexp.MustCompile(`"thread_ts":"[0-9.]+",`)}, looks: 1},
		"a preview of another app's": {tamper: tamper{method: post, cut: regexp.MustCompile(`"blocks":`), with: `"attachments":[{"blocks":[{"type":"actions","elements":[{"type":"?"}]}]}],"blocks":`}},
		"internal error":             {fault: slacktest.Failing(post, "internal_error"), fails: true, looks: 1},
		"500":                        {fault: slacktest.Fault{On: post, Status: 500}, fails: true, looks: 1},
		"unavailable":                {fault: slacktest.Failing(post, "service_unavailable"), fails: true},
		"403 on the way":             {fault: slacktest.Fault{On: post, Status: 403}, fails: true},
		"too often":                  {fault: slacktest.Limited(post, 5*time.Second), fails: true},
		"a moment too early":         {fault: slacktest.Limited(post, time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := quiet(t)
			f.tampered(tt.tamper)
			if tt.fault.On != "" {
				f.Inject(tt.fault)
			}
			j := f.saying("Hello")
			if tt.fails {
				if p := f.fails(j); !p.Again || p.Gone {
					t.Errorf("%+v", p)
				}
				f.anew()
			} else {
				f.do(j)
			}
			if n := f.Calls("conversations.replies"); n != tt.looks {
				t.Errorf("looked %d times", n)
			}
			f.do(again(j))
			f.do(again(j))
			if got := f.lines(); !slices.Equal(got, []string{"Hello"}) || len(f.everywhere()) != 1 {
				t.Errorf("it reads %q", got)
			}
		})
	}
}

// TestPostNames what it posted, wherever it learnt it.
func TestPostNames(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	w := f.works(f.saying(""))
	first, err := w.post(t.Context(), Settling, "a", told("one")[0])
	if err != nil || f.Message(f.thread.channel, first).Plain != "one" {
		t.Fatalf("%q, %v", first, err)
	}
	w.job.Repeat = true
	found, err := w.post(t.Context(), Settling, "a", told("one")[0])
	if err != nil || found != first {
		t.Errorf("%q is not %q: %v", found, first, err)
	}
	other, err := w.post(t.Context(), Settling, "b", told("two")[0])
	if err != nil || other == first {
		t.Errorf("%q: %v", other, err)
	}
	if m := f.Message(f.thread.channel, first); string(m.Metadata) != `{"event_type":"ship_report","event_payload":{"outbox_id":"a"}}` || m.Thread != f.thread.root {
		t.Errorf("%+v", m)
	}
}

// TestPostHangs: a process that ends meanwhile leaves it to the next one.
func TestPostHangs(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	asked := make(chan struct{})
	f.Inject(slacktest.Fault{On: "chat.postMessage", Hang: true, Do: func(*http.Request) { close(asked) }})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(session.ErrShutdown)
	}()
	_, err := f.performer.Perform(ctx, f.saying("Hello"))
	var p *session.Problem
	if !errors.Is(err, session.ErrShutdown) || errors.As(err, &p) {
		t.Errorf("%v", err)
	}
	f.anew()
	f.do(again(f.saying("Hello")))
	if got := f.lines(); !slices.Equal(got, []string{"Hello"}) {
		t.Errorf("it reads %q", got)
	}
}

// TestPostsAfterACrash: what was posted of several messages before is not
// posted again, and the rest follows in order.
func TestPostsAfterACrash(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("A \"quoted\" <thing> & more of that.\n\n", 1000)[:10_000*2]
	want := told(text)
	if len(want) < 3 {
		t.Fatalf("%d messages", len(want))
	}
	for name, fault := range map[string]slacktest.Fault{
		"not posted": {On: "chat.postMessage", Skip: 1, Status: 502},
		"lost":       {On: "chat.postMessage", Skip: 1, Lost: true},
	} {
		for _, look := range []string{"", "not known"} {
			t.Run(name+" "+look, func(t *testing.T) {
				t.Parallel()
				f := quiet(t)
				f.Inject(fault)
				if look != "" {
					f.Inject(slacktest.Fault{On: "conversations.replies", Status: 502})
				}
				j := f.saying(text)
				if fault.Lost && look == "" {
					f.do(j)
				} else if p := f.fails(j); !p.Again {
					t.Errorf("%+v", p)
				}
				f.do(again(j))
				f.do(again(j))
				var ids []string
				for _, m := range f.everywhere() {
					_, id, _ := strings.Cut(string(m.Metadata), `"outbox_id":"`)
					ids = append(ids, strings.TrimRight(id, `"}`))
				}
				for i := range want {
					if i >= len(ids) || ids[i] != numbered(j.Effect.ID, i+1) {
						t.Fatalf("posted %q, want %d", ids, len(want))
					}
				}
				if len(ids) != len(want) {
					t.Errorf("posted %q, want %d", ids, len(want))
				}
			})
		}
	}
}

// TestNoThreadAnyMore: each way in which a thread can be closed to us ends it,
// and nothing is left in the channel.
func TestNoThreadAnyMore(t *testing.T) {
	t.Parallel()
	for name, close := range map[string]func(*floor){
		"channel archived": func(f *floor) { f.Archive("eng") },
		"removed":          func(f *floor) { f.Remove("eng") },
		"root deleted":     func(f *floor) { f.Delete(slacktest.Change{Channel: "eng", TS: f.thread.root, By: "ada"}) },
		"token revoked":    func(f *floor) { f.RevokeToken() },
		"uninstalled":      func(f *floor) { f.Uninstall() },
	} {
		for _, repeat := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", repeat), func(t *testing.T) {
				t.Parallel()
				f := quiet(t)
				close(f)
				j := f.saying("Hello")
				if repeat {
					j = again(j)
				}
				if p := f.fails(j); !p.Gone || p.Say == "" {
					t.Errorf("%+v", p)
				}
				if got := f.everywhere(); len(got) > 0 {
					t.Errorf("left %+v", got)
				}
			})
		}
	}
}

// TestRootDeletedWithReplies: such a thread goes on.
func TestRootDeletedWithReplies(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	f.do(f.saying("Hello"))
	f.Delete(slacktest.Change{Channel: "eng", TS: f.thread.root, By: "ada"})
	j := f.saying("Bye")
	j.Effect.ID = "another"
	f.do(j)
	f.do(again(j))
	if got := f.lines(); !slices.Equal(got, []string{"Hello", "Bye"}) {
		t.Errorf("it reads %q", got)
	}
}

// TestNotInvited: what needs people is waited for, and the thread is kept.
func TestNotAllowed(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	f.SetScopes("channels:history")
	p := f.fails(f.saying("Hello"))
	if !p.Again || p.Gone || !strings.Contains(p.Say, "`chat:write`") || !strings.Contains(p.Error(), "needed: chat:write") {
		t.Errorf("%+v", p)
	}
	f.SetScopes(slacktest.DefaultScopes()...)
	f.do(again(f.saying("Hello")))
	if got := f.lines(); !slices.Equal(got, []string{"Hello"}) {
		t.Errorf("it reads %q", got)
	}
}

// TestPostBegins: where there is no thread yet, it is the channel that is
// written to and read.
func TestPostBegins(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	f.Say("lunch?", 5)
	begun := f.thread
	f.thread.root = commandOf("1.2.x")
	f.Inject(slacktest.Fault{On: "chat.postMessage", Lost: true})
	j := f.saying("")
	for _, j := range []session.Job{j, again(j)} {
		if _, err := f.works(j).post(t.Context(), Asking, j.Effect.ID, told("On it")[0]); err != nil {
			t.Fatal(err)
		}
	}
	all := f.everywhere()
	if len(all) != 1 || all[0].Plain != "On it" || all[0].Thread != "" || f.Calls("conversations.history") != 2 {
		t.Errorf("%+v", all)
	}
	f.thread = begun
	if got := f.lines(); got != nil {
		t.Errorf("in another thread it reads %q", got)
	}
}

// Say has people write in the channel.
func (f *floor) Say(text string, times int) {
	for i := range times {
		f.Post(slacktest.Said{Channel: "eng", By: "bob", Text: fmt.Sprint(text, i)})
	}
}

// logged is the floor with a log to be read.
func (f *floor) logged() *strings.Builder {
	log := new(strings.Builder)
	c := Config{
		Settings: Settings{BotToken: config.NewSecret(f.BotToken()), APIURL: f.APIURL()}, Quota: f.quota,
		Transport: &http.Transport{DisableKeepAlives: true}, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	f.performer = newPerformer(newApp(c), c)
	return log
}

// TestBlocksRefused: the words are told all the same, and what can be chosen.
func TestBlocksRefused(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			f := quiet(t)
			log := f.logged()
			f.Inject(slacktest.Failing("chat.postMessage", refused))
			f.Inject(slacktest.Failing("chat.update", refused))
			w := f.works(f.saying(""))
			question := posed(blockID(team, nameRepo), "Which <one>?", []session.Choice{{Value: "acme/api", Label: "The API"}, {Value: "a`<b>"}})[0]
			ts, err := w.post(t.Context(), Asking, "a", question)
			if err != nil {
				t.Fatal(err)
			}
			const want = "Which &lt;one&gt;?\n• `acme/api`\n• `aʼ&lt;b&gt;`"
			if m := f.Message("eng", ts); m.Text != strings.ReplaceAll(want, "ʼ", tick) || m.Blocks != nil {
				t.Errorf("it reads %q", m.Text)
			}
			if err := w.update(t.Context(), Asking, ts, question); err != nil {
				t.Fatal(err)
			}
			if m := f.Message("eng", ts); m.Text != strings.ReplaceAll(want, "ʼ", tick) || m.Blocks != nil || m.Updates != 1 {
				t.Errorf("it reads %q", m.Text)
			}
			if n := strings.Count(log.String(), "slack does not take the blocks"); n != 2 || !strings.Contains(log.String(), refused) {
				t.Errorf("logged %s", log)
			}
			f.Inject(refusing("chat.postMessage", refused))
			if p := f.fails(f.saying("Hello")); p.Again || p.Gone || !strings.Contains(p.Say, refused) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestUpdate: a message keeps its blocks and what it is known by, and one that is
// deleted is told from one that cannot be changed just now.
func TestUpdate(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	w := f.works(f.saying(""))
	ts, err := w.post(t.Context(), Thinking, "a", told("one")[0])
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.update(t.Context(), Moving, ts, told("see https://a.example & more")[0]); err != nil {
			t.Fatal(err)
		}
		m := f.Message("eng", ts)
		if m.Plain != "see https://a.example & more" || m.Edited || m.Blocks == nil || !strings.Contains(string(m.Metadata), `"a"`) {
			t.Errorf("%+v", m)
		}
	}
	f.Inject(slacktest.Fault{On: "chat.update", Lost: true})
	if p := classify(w.update(t.Context(), Moving, ts, told("two")[0])); !p.Again {
		t.Errorf("%+v", p)
	}
	f.Inject(slacktest.Limited("chat.update", 7*time.Second))
	if p := classify(w.update(t.Context(), Moving, ts, told("two")[0])); !p.Again || p.After != 7*time.Second {
		t.Errorf("%+v", p)
	}
	f.anew()
	w = f.works(f.saying(""))
	f.Delete(slacktest.Change{Channel: "eng", TS: ts, By: "ship"})
	if err := w.update(t.Context(), Thinking, ts, told("two")[0]); code(err) != "message_not_found" || !fixed(err) {
		t.Errorf("%v", err)
	}
	if err := w.update(t.Context(), Thinking, f.thread.root, told("two")[0]); code(err) != "cant_update_message" || !fixed(err) {
		t.Errorf("%v", err)
	}
	for range 2 {
		if err := w.remove(t.Context(), Thinking, ts); err != nil {
			t.Error(err)
		}
	}
}

// TestReplies: all of a thread, page by page, and no more than was asked for.
func TestReplies(t *testing.T) {
	t.Parallel()
	l := slacktest.NoLimits()
	l.Page = 3
	f := newFloor(t, slacktest.Options{Limits: l})
	stamps := []string{f.thread.root}
	for i := range 10 {
		ts, _ := f.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: f.thread.root, Text: fmt.Sprint(i)})
		stamps = append(stamps, ts)
	}
	f.Say("elsewhere", 3)
	w := f.works(f.saying(""))
	for _, tt := range []struct {
		oldest string
		most   int
		want   []string
	}{
		{"", 100, stamps},
		{"", 4, stamps[:4]},
		{stamps[5], 100, append([]string{stamps[0]}, stamps[5:]...)},
		{stamps[10], 2, []string{stamps[0], stamps[10]}},
		{tsOf(time.Now().Add(time.Hour)), 100, stamps[:1]},
	} {
		got, err := w.replies(t.Context(), Thinking, tt.oldest, tt.most)
		if err != nil {
			t.Fatal(err)
		}
		if all := stampsOf(got); !slices.Equal(all, tt.want) {
			t.Errorf("since %q at most %d: %q, want %q", tt.oldest, tt.most, all, tt.want)
		}
	}
	w.thread.root = commandOf("1.2.x")
	got, err := w.replies(t.Context(), Thinking, stamps[0], 100)
	if err != nil || len(got) != 4 || got[0].TS != stamps[0] || !slices.IsSorted(stampsOf(got)) {
		t.Errorf("in the channel: %q, %v", stampsOf(got), err)
	}
}

func stampsOf(messages []message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.TS)
	}
	return out
}

// TestLongThread: of a thread with very many messages only those are read that
// can be ours.
func TestLongThread(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	for i := range 1200 {
		f.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: f.thread.root, Text: fmt.Sprint(i)})
	}
	f.pass(time.Hour)
	j := f.saying("Hello")
	f.Inject(slacktest.Fault{On: "chat.postMessage", Lost: true})
	f.do(j)
	if n := f.Calls("conversations.replies"); n != 1 || len(f.lines()) != 1 {
		t.Errorf("read %d pages, and there is %q", n, f.lines())
	}
	j.Effect.Since = j.Effect.Since.Add(-2 * time.Hour)
	f.do(again(j))
	if n := f.Calls("conversations.replies"); n != 8 || len(f.lines()) != 1 {
		t.Errorf("read %d pages, and there is %q", n, f.lines())
	}
}

// TestOursOnly: what others say with our ids counts for nothing.
func TestOursOnly(t *testing.T) {
	t.Parallel()
	self := identity{user: "U1", bot: "B1"}
	for _, tt := range []struct {
		m    message
		want bool
	}{
		{message{User: "U1"}, true}, {message{Bot: "B1"}, true}, {message{User: "U1", Bot: "B2"}, true},
		{message{User: "U2", Bot: "B2"}, false}, {message{}, false},
	} {
		if got := self.wrote(tt.m); got != tt.want {
			t.Errorf("%+v: %v", tt.m, got)
		}
	}
	if (identity{}).wrote(message{}) {
		t.Error("nobody wrote nothing")
	}
	for of, want := range map[string]string{
		`{"event_type":"ship_report","event_payload":{"outbox_id":"a"}}`: "a", `{"event_type":"other","event_payload":{"outbox_id":"a"}}`: "",
		`{"event_type":"ship_report","event_payload":{"outbox_id":3}}`: "", `{"event_type":"ship_report","event_payload":[]}`: "", `"x"`: "",
	} {
		m, err := decode[message]([]byte(`{"metadata":` + of + `}`))
		if got := m.outboxID(); err != nil || got != want {
			t.Errorf("%s: %q, %v", of, got, err)
		}
	}
	if got := tsOf(time.Time{}); got != "" {
		t.Errorf("got %q", got)
	}
	if got := tsOf(time.Unix(1795000000, 123_456_789)); got != "1795000000.123456" {
		t.Errorf("got %q", got)
	}
}
