package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	api "github.com/slack-go/slack"
)

// maxAnswer is how much is read of one answer, in bytes. A page of messages that
// is longer is asked for in smaller ones.
const maxAnswer = 8 << 20

// pageSize is how many things are asked for at once. Slack recommends no more.
const pageSize = 200

var (
	// errAnswer: what came back is not what Slack answers. That passes.
	errAnswer = errors.New("slack's answer was not understood")
	errLength = errors.New("slack's answer is too long")
)

// answer is what ship needs of what Slack answers where there are messages in
// it. The library would have none of that if one block of one of them is of a
// kind that it does not know: any app may have posted it, or added a preview to
// a message of ours.
type answer struct {
	OK       bool   `json:"ok"`
	Error    string `json:"error"`
	Needed   string `json:"needed"`
	Provided string `json:"provided"`
	More     struct {
		Cursor   string   `json:"next_cursor"`
		Messages []string `json:"messages"`
	} `json:"response_metadata"`
	Messages []message `json:"messages"`
	// TS and Message are what was posted or changed.
	TS       string    `json:"ts"`
	Message  message   `json:"message"`
	Channels []channel `json:"channels"`
	Channel  channel   `json:"channel"`
	File     file      `json:"file"`
}

// channel as Slack lists it.
type channel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Party: a direct message between several, whose name says who they are.
	Party bool `json:"is_mpim"`
	// Shared with another company's workspace.
	Shared bool `json:"is_ext_shared"`
}

// ask calls a method, which says whether that may be repeated. Errors are those
// of the library: see classify.
func (a *app) ask(ctx context.Context, method string, form url.Values) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+method, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, fmt.Errorf("ask slack: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+a.token.Reveal())
	resp, err := a.doer.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("ask slack: %w", err)
	}
	defer resp.Body.Close()
	if err := refusal(resp); err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return answer{}, fmt.Errorf("read slack's answer: %w", err)
	}
	if len(body) > maxAnswer {
		return answer{}, errLength
	}
	return understand(body)
}

// refusal is what a status says; nil: there is an answer to read.
func refusal(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusTooManyRequests:
		after, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16) // up to 18 h
		if err != nil {
			return &api.RateLimitedError{RetryAfter: limitWait}
		}
		return &api.RateLimitedError{RetryAfter: time.Duration(after) * time.Second}
	}
	return api.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
}

// understand decodes an answer. Slack says ok, or what is wrong.
func understand(body []byte) (answer, error) {
	a, err := decode[answer](body)
	switch {
	case err != nil || !a.OK && a.Error == "":
		return answer{}, errAnswer
	case !a.OK:
		return answer{}, api.SlackErrorResponse{
			Err: a.Error, Needed: a.Needed, Provided: a.Provided, ResponseMetadata: api.ResponseMetadata{Messages: a.More.Messages},
		}
	}
	return a, nil
}

// stretch is a part of a thread, or of a channel if there is no root, that is
// read page by page.
type stretch struct {
	channel, root string
	// oldest message of it; empty: the first.
	oldest string
	// cursor is behind what was read; empty: nothing was, or all.
	cursor string
	// size of a page.
	size int
}

func (s *stretch) method() string {
	if s.root == "" {
		return "conversations.history"
	}
	return "conversations.replies"
}

// form asks for the next page. Slack leaves the metadata out unless it is asked
// for it.
func (s *stretch) form() url.Values {
	f := url.Values{
		"channel": {s.channel}, "limit": {strconv.Itoa(s.size)}, "inclusive": {"1"}, "include_all_metadata": {"1"},
	}
	for name, value := range map[string]string{"ts": s.root, "oldest": s.oldest, "cursor": s.cursor} {
		if value != "" {
			f.Set(name, value)
		}
	}
	return f
}

// turn makes a request of a method when that has its turn.
type turn func(ctx context.Context, method string, request func(context.Context) error) error

// next reads the next page of a stretch. Pages get smaller where people write
// more than fits into an answer.
func (a *app) next(ctx context.Context, s *stretch, t turn) ([]message, error) {
	for {
		var got answer
		err := t(ctx, s.method(), func(ctx context.Context) (err error) {
			got, err = a.ask(ctx, s.method(), s.form())
			return err
		})
		switch {
		case errors.Is(err, errLength) && s.size > 1:
			s.size /= 2
			continue
		case err != nil:
			return nil, err
		case got.Messages == nil: // an empty list is not that
			return nil, errAnswer
		}
		if got.More.Cursor == s.cursor { // it leads nowhere
			got.More.Cursor = ""
		}
		s.cursor = got.More.Cursor
		return identified(got.Messages), nil
	}
}
