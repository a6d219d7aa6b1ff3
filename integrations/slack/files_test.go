package slack

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ship/bot"
	"ship/config"
	"ship/integrations/slack/slacktest"
	"ship/session"
)

// TestFiles: what is text is read along, as far as there is room; all else is
// named.
func TestFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Default = "acme/widgets"
	up := func(name, mime, content string) string {
		return d.Upload(slacktest.File{Name: name, MIME: mime, By: "ada", Content: []byte(content)})
	}
	_, ds := d.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix it", Files: []string{
		up("a.log", "text/plain", "one\ntwo"), up("b.json", "application/json", `{"a":1}`), up("c.png", "image/png", "\x89PNG"),
		up("d.txt", "text/plain", "a\x00b"), up("e.txt", "text/plain", "\xff\xfe"), up("f.txt", "text/plain", strings.Repeat("f", maxFile)+"the end"),
		up("g.yaml", "application/x+yaml", strings.Repeat("ä", maxFile)), up("h.txt", "text/plain", "there is no room"),
		up("i `x`\n> y.txt", "text/plain", ""),
	}})
	a := d.admit(d.request(ds...))
	for _, want := range []string{
		"File a.log (text/plain, 7 bytes), attached by ada:\n> one\n> two\n\n", "File b.json (application/json, 7 bytes), attached by ada:\n> {\"a\":1}\n\n",
		"File c.png (image/png, 4 bytes), attached by ada:\n> (" + whyNoText + ")\n\n", "File d.txt (text/plain, 3 bytes), attached by ada:\n> (" + whyNoText,
		"File e.txt (text/plain, 2 bytes), attached by ada:\n> (" + whyNoText, "File f.txt (text/plain, 24583 bytes), attached by ada:\n> ffff", " bytes are left out here]\n> fff", "ffthe end\n\n",
		"File h.txt (text/plain, 16 bytes), attached by ada:\n> (" + whyNoRoom,
	} {
		if !strings.Contains(a.Quote, want) {
			t.Errorf("%q is not in %.1000q", want, a.Quote)
		}
	}
	if len(a.Quote) > maxFiles || strings.Contains(a.Quote, "\n> y.txt") {
		t.Errorf("%d bytes", len(a.Quote))
	}
}

// TestFilesElsewhere: what was attached before the request is told with what was
// said there; of another company's, Slack has to be asked.
func TestFilesElsewhere(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Default = "acme/widgets"
	d.AddPerson(slacktest.Person{Handle: "eve", Name: "Eve", Team: "T0OTHER"})
	d.CreateChannel(slacktest.Channel{Name: "shared", Shared: true})
	file := d.Upload(slacktest.File{Name: "trace.txt", MIME: "text/plain", By: "eve", Content: []byte("boom")})
	begun, _ := d.Post(slacktest.Said{Channel: "shared", By: "eve", Text: "it broke", Files: []string{file}})
	_, ds := d.Mention(slacktest.Said{Channel: "shared", By: "ada", Thread: begun, Text: "fix it"})
	r := d.request(ds...)
	a := d.admit(r)
	if want := "Message by eve:\n> it broke\n\nFile trace.txt (text/plain, 4 bytes), attached by eve:\n> boom\n\n"; a.Context != want || a.Quote != "" {
		t.Errorf("%q, %q", a.Context, a.Quote)
	}
	d.Inject(slacktest.Fault{On: "file", Status: http.StatusInternalServerError})
	if a := d.admit(r); !strings.Contains(a.Context, "> ("+whyFailed+")") || !strings.Contains(d.log.String(), "not fetched") {
		t.Errorf("%q", a.Context)
	}
	d.SetScopes("app_mentions:read", "channels:history", "users:read", "users:read.email", "chat:write")
	if a := d.admit(r); !strings.Contains(a.Context, "> ("+whyFailed+")") {
		t.Errorf("without the scope: %q", a.Context)
	}
}

// TestTokenStays: our token goes to Slack's own hosts only, wherever a file is
// said to be and wherever that leads.
func TestTokenStays(t *testing.T) {
	t.Parallel()
	var told atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told.Add(1) }))
	t.Cleanup(elsewhere.Close)
	d := newDesk(t, nil)
	c := workOf(d).newCourier()
	base := d.URL
	for at, want := range map[string]bool{
		"https://files.slack.com/files-pri/T1-F1/a.txt": true, "https://slack.com/x": true, base + "/files-pri/F1/a.txt": true,
		"http://files.slack.com/x": false, "https://files.slack.com:444/x": false, "https://u:p@files.slack.com/x": false,
		"https://slack.com.evil.example/x": false, "https://evilslack.com/x": false, elsewhere.URL: false, "file:///etc/passwd": false, "": false,
	} {
		u, err := url.Parse(at)
		if err != nil || c.trusts(u) != want {
			t.Errorf("%q: %v, %v", at, !want, err)
		}
	}
	f := file{ID: "F1", Name: "a.txt", Mimetype: "text/plain", Mode: "hosted", URL: elsewhere.URL + "/a.txt"}
	if b := c.bring(t.Context(), f, maxFile); b.why != whyFailed {
		t.Errorf("%+v", b)
	}
	f.URL = base + "/files-pri/F1/a.txt"
	d.Inject(slacktest.Fault{On: "file", Status: http.StatusFound, Header: http.Header{"Location": {elsewhere.URL}}})
	if b := c.bring(t.Context(), f, maxFile); b.why != whyFailed {
		t.Errorf("led away: %+v", b)
	}
	if told.Load() != 0 {
		t.Error("the token left")
	}
}

// TestSignInPage: what Slack shows to who may not see a file is none.
func TestSignInPage(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(c *Config) { c.BotToken = config.NewSecret("xoxb-another") })
	id := d.Upload(slacktest.File{Name: "a.html", MIME: "text/html", By: "ada", Content: []byte("<p>")})
	d.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "x", Files: []string{id}})
	c := workOf(d).newCourier()
	for _, mime := range []string{"text/html", "text/plain"} {
		b := c.bring(t.Context(), file{ID: id, Name: "a.html", Mimetype: mime, Mode: "hosted", URL: d.URL + "/files-pri/" + id + "/a.html"}, maxFile)
		if b.why != whyFailed || b.text != "" {
			t.Errorf("%s: %+v", mime, b)
		}
	}
	if strings.Contains(d.log.String(), "xoxb-another") {
		t.Error("the token is in the log")
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	of := func(mime, mode string) file { return file{Mimetype: mime, Mode: mode, URL: "https://x"} }
	for i, tt := range []struct {
		f    file
		want bool
	}{
		{of("text/plain", "hosted"), true}, {of("text/x-go; charset=utf-8", "hosted"), true}, {of("application/json", "hosted"), true},
		{of("application/ld+json", "hosted"), true}, {of("", "snippet"), true}, {of("application/pdf", "hosted"), false},
		{of("image/svg+xml", "hosted"), false}, {of("text/plain", "external"), false}, {of("text/plain", "tombstone"), false},
		{of("text/plain", "hidden_by_limit"), false}, {file{Mimetype: "text/plain", Mode: "hosted"}, false},
		{file{Mimetype: "text/plain", Mode: "hosted", URL: "https://x", External: true}, false},
	} {
		if got := readable(tt.f); got != tt.want {
			t.Error(fmt.Sprint(i), got)
		}
	}
}

// TestMuchAttached: whatever is said and attached, a session has only so much of
// it to keep, and each file that is not shown has its name there, or is counted.
func TestMuchAttached(t *testing.T) {
	t.Parallel()
	const kept, keptQuote = 80 << 10, 64 << 10 // what session.Admission says
	d := newDesk(t, func(c *Config) {
		c.Links = &tracker{found: []bot.Link{{About: strings.Repeat("a", maxAbout)}, {About: strings.Repeat("b", maxAbout)}}}
	})
	d.gate.Routes.Default = "acme/widgets"
	up := func(n int, content string) string {
		return d.Upload(slacktest.File{Name: fmt.Sprintf("%d-%s.txt", n, strings.Repeat("x", 90)), MIME: "text/plain", By: "ada", Content: []byte(content)})
	}
	begun, _ := d.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "first"})
	for n := range 40 {
		files := []string{up(n, strings.Repeat("\n", 2*maxFile)+"."), up(100+n, strings.Repeat("log\n", maxFile))}
		d.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: begun, Text: strings.Repeat("y", 1500), Files: files})
	}
	_, ds := d.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: begun, Text: "fix it", Files: []string{up(200, "short")}})
	r := d.request(ds...)
	for name, heard := range map[string]time.Time{"all before": {}, "all beside": moment(begun)} {
		d.state.Threads = []session.Voice{{Thread: r.Thread, Talks: true, Heard: heard}}
		a := d.admit(r)
		if len(a.Context) > kept || len(a.Quote) > keptQuote || len(a.Context)+len(a.Quote) > kept+maxBeside || len(a.Context)+len(a.Quote) < kept-maxBeside {
			t.Errorf("%s: %d and %d bytes", name, len(a.Context), len(a.Quote))
		}
		all := a.Quote + a.Context
		if !strings.HasPrefix(a.Quote[strings.Index(a.Quote, "File "):], "File 200-") || !strings.Contains(all, whyNoRoom) || !strings.Contains(all, "File names left out: ") {
			t.Errorf("%s: %.300q", name, all)
		}
	}
}

// TestLongFile: of a file that is too long to be fetched as a whole there is the
// beginning, and of one whose length Slack does not know.
func TestLongFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		size, content int
		want          string
	}{
		{maxWhole + 7, maxFile + 1, fmt.Sprintf("xx\n> [%d bytes are left out here]\n\n", maxWhole+7-896)},
		{0, maxWhole + 1, fmt.Sprintf("xx\n> [%d bytes are left out here]\n\n", maxWhole+1-896)},
		{0, maxWhole, fmt.Sprintf("xx\n> [%d bytes are left out here]\n> xx", maxWhole-896)},
	} {
		b := brought{name: "a.log", kind: "text/plain", size: tt.size}.read([]byte(strings.Repeat("x", tt.content)))
		overhead := len(brought{name: "a.log", kind: "text/plain", size: tt.size}.told("ada", 0))
		if got := b.told("ada", 896+maxGap+overhead); !strings.Contains(got, tt.want) || len(got) > 896+maxGap+overhead {
			t.Errorf("%d of %d: %d bytes, %.80q … %q", tt.content, tt.size, len(got), got, got[len(got)-80:])
		}
	}
	cut := brought{size: maxWhole + 2}.read([]byte(strings.Repeat("x", maxFile-1) + "ä"))
	if cut.why != "" || len(cut.text) != maxFile-1 || cut.more != maxWhole+2-len(cut.text) {
		t.Errorf("in the middle of a character: %q, %d, %d", cut.why, len(cut.text), cut.more)
	}
}
