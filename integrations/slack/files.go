package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	api "github.com/slack-go/slack"

	"ship/bot"
)

const (
	// maxFile is how much of a file the agent gets to read, and maxFiles of all
	// that come with a request, in bytes, headings and marks of quotation included:
	// the session keeps it. Of that, maxNamed are for naming those that are not
	// shown, and where less than minFile is left for one, it is not.
	maxFile  = 24 << 10
	maxFiles = 48 << 10
	maxNamed = 4 << 10
	minFile  = 1 << 10
	// maxFetched is how many are fetched, and maxWhole how long those are whose
	// end is shown too, in bytes.
	maxFetched = 10
	maxWhole   = 4 << 20
	// maxHops is how often a download may lead elsewhere.
	maxHops = 3
)

var (
	// errForeign: an address that our token must not be sent to.
	errForeign = errors.New("not an address of slack's files")
	// errNoFile: what was sent in its place is no file, but a page to sign in on.
	errNoFile = errors.New("slack did not send the file")
)

// courier fetches the files that come with one request.
type courier struct {
	*work
	doer *http.Client
	// trips are left.
	trips int
}

func (w *work) newCourier() *courier {
	c := &courier{work: w, trips: maxFetched}
	c.doer = &http.Client{
		Transport: w.app.doer.Transport, Timeout: callTimeout,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxHops || !c.trusts(r.URL) {
				return errForeign
			}
			return nil
		},
	}
	return c
}

// brought is a file as the agent gets to read it.
type brought struct {
	name, kind string
	size       int
	// text is what could be read, and more is how many bytes of it could not be
	// fetched. why is why there is none.
	text, why string
	more      int
}

// told is the file as the agent gets to read it, in at most room bytes unless
// it is only named.
func (b brought) told(by string, room int) string {
	r := bot.Remark{Head: fmt.Sprintf("File %s (%s, %d bytes), attached by %s:", b.name, b.kind, b.size, by)}
	if b.why != "" {
		r.Text = "(" + b.why + ")"
		return r.String()
	}
	r.Text = excerpt(b.text, b.more, room-len(r.String()))
	return r.String()
}

// Why a file is only named.
const (
	whyNoText = "not text, so it is not shown here"
	whyNoRoom = "too much was attached to show this too"
	whyFailed = "it could not be fetched"
)

// bring fetches a file, as far as it is text and there is room for it. What
// cannot be had is named.
func (c *courier) bring(ctx context.Context, f file, room int) brought {
	f, err := c.known(ctx, f)
	b := brought{name: bot.Phrase(f.Name, 100), kind: bot.Phrase(f.Mimetype, 60), size: f.Size}
	switch {
	case err != nil:
		b.why = whyFailed
	case !readable(f):
		b.why = whyNoText
	case room < minFile || c.trips <= 0:
		b.why = whyNoRoom
	default:
		var content []byte
		if content, err = c.fetch(ctx, f); err == nil {
			b = b.read(content)
		} else {
			b.why = whyFailed
		}
	}
	if err != nil {
		c.app.log.WarnContext(ctx, "a file was not fetched from slack", "session", string(c.job.State.ID), "file", f.ID, "err", detailed(err))
	}
	return b
}

// read takes what was fetched for text, as far as it is.
func (b brought) read(content []byte) brought {
	most := whole(b.size)
	b.text = bot.Prefix(string(content), most)
	if len(content) > most {
		b.more = max(b.size, len(content)) - len(b.text)
	}
	if !utf8.ValidString(b.text) || strings.ContainsRune(b.text, 0) {
		return brought{name: b.name, kind: b.kind, size: b.size, why: whyNoText}
	}
	return b
}

// whole is how much is fetched of a file of some size: all of it, or no more
// than what is shown of its beginning.
func whole(size int) int {
	if size > maxWhole {
		return maxFile
	}
	return maxWhole
}

// known is a file with all that there is to know of it. Of those of other
// companies, a message has the id only.
func (c *courier) known(ctx context.Context, f file) (file, error) {
	if f.Access != "check_file_info" || c.trips <= 0 {
		return f, nil
	}
	c.trips--
	const method = "files.info"
	var found answer
	err := c.app.call(ctx, Thinking, c.call(method), func(ctx context.Context) (err error) {
		found, err = c.app.ask(ctx, method, url.Values{"file": {f.ID}})
		return err
	})
	if err != nil {
		return f, err
	}
	return found.File, nil
}

// textual are types of text that do not say so.
var textual = []string{"json", "xml", "yaml", "toml", "javascript", "typescript", "sql", "x-sh", "x-python", "x-ruby", "x-httpd-php", "graphql", "csv", "x-ndjson"}

// readable: a file that Slack has, and that may be text.
func readable(f file) bool {
	if f.External || f.Mode != "hosted" && f.Mode != "snippet" || f.URL == "" {
		return false
	}
	kind, _, _ := strings.Cut(f.Mimetype, ";")
	kind, rest, _ := strings.Cut(kind, "/")
	if kind == "text" {
		return true
	}
	for _, t := range textual {
		if kind == "application" && (rest == t || strings.HasSuffix(rest, "+"+t)) {
			return true
		}
	}
	return f.Mode == "snippet"
}

// fetch downloads the beginning of a file, with our token. It may be repeated.
func (c *courier) fetch(ctx context.Context, f file) ([]byte, error) {
	c.trips--
	at, err := url.Parse(f.URL)
	if err != nil || !c.trusts(at) {
		return nil, errForeign
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errForeign
	}
	req.Header.Set("Authorization", "Bearer "+c.app.token.Reveal())
	resp, err := c.doer.Do(req)
	if way, ok := errors.AsType[*url.Error](err); ok { // some addresses let in whoever knows them
		err = way.Err
	}
	if err != nil {
		return nil, fmt.Errorf("fetch a file: %w", err)
	}
	defer resp.Body.Close()
	page := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch a file: %w", api.StatusCodeError{Code: resp.StatusCode, Status: resp.Status})
	}
	if page && (!strings.HasPrefix(f.Mimetype, "text/html") || resp.Request.URL.Path != at.Path) {
		return nil, errNoFile
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, int64(whole(f.Size))+1))
	if err != nil {
		return nil, fmt.Errorf("fetch a file: %w", err)
	}
	return content, nil
}

// trusts: our token may be sent there. That is to Slack's own hosts, and to
// where its API was said to be.
func (c *courier) trusts(at *url.URL) bool {
	if base, err := url.Parse(c.settings.APIURL); err == nil && at.Scheme == base.Scheme && at.Host == base.Host {
		return true
	}
	return at.Scheme == "https" && at.User == nil && at.Port() == "" && (at.Hostname() == "slack.com" || strings.HasSuffix(at.Hostname(), ".slack.com"))
}
