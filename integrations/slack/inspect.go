package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	api "github.com/slack-go/slack"
)

// Why Slack does not let an Inspector in.
var (
	// ErrBotToken: it does not take the bot's token, or not any more.
	ErrBotToken = errors.New("slack does not accept the bot token")
	// ErrAppToken: it does not take the app-level token, or not for this.
	ErrAppToken = errors.New("slack gives no socket for the app-level token")
	// ErrScope: the token is good, and may not do that.
	ErrScope = errors.New("the token lacks a scope")
)

// Inspector asks Slack what it makes of the settings, for whoever sets ship up.
// It changes nothing, and may be asked again.
type Inspector struct{ client *api.Client }

// NewInspector speaks with nobody yet. A nil transport is
// http.DefaultTransport.
func NewInspector(s Settings, transport http.RoundTripper) *Inspector {
	doer := &http.Client{Transport: transport, Timeout: openTimeout, CheckRedirect: stay}
	return &Inspector{api.New(s.BotToken.Reveal(), api.OptionAppLevelToken(s.AppToken.Reveal()),
		api.OptionAPIURL(strings.TrimRight(cmp.Or(s.APIURL, DefaultAPIURL), "/")+"/"), api.OptionHTTPClient(doer))}
}

// Holder is whom the bot's token acts as, and where.
type Holder struct {
	// User is the id, and Name the handle.
	User, Name string
	// App: it is an app's bot user, and not a person.
	App bool
	// Team is the workspace's id, Workspace its name and Host where people find
	// it.
	Team, Workspace, Host string
	// Scopes that were granted, sorted; nil when Slack did not say.
	Scopes []string
}

// Holder asks who the token acts as. Errors wrap ErrBotToken where Slack
// answered so.
func (i *Inspector) Holder(ctx context.Context) (Holder, error) {
	r, err := i.client.AuthTestContext(ctx)
	if err != nil {
		return Holder{}, inspected(err, ErrBotToken)
	}
	h := Holder{User: r.UserID, Name: r.User, App: r.BotID != "", Team: r.TeamID, Workspace: r.Team, Scopes: granted(r.Header)}
	if at, err := url.Parse(r.URL); err == nil {
		h.Host = at.Host
	}
	return h, nil
}

// granted reads the scopes that Slack tells of with every answer.
func granted(h http.Header) []string {
	scopes := strings.FieldsFunc(h.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
	if len(scopes) == 0 {
		return nil
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// Account is what Slack says of somebody.
type Account struct {
	Name string
	// Gone: it was deactivated.
	Gone bool
}

// Account asks about somebody by their id, as ship does before anybody
// commands it. Errors wrap ErrScope without users:read.
func (i *Inspector) Account(ctx context.Context, user string) (Account, error) {
	u, err := i.client.GetUserInfoContext(ctx, user)
	if err != nil {
		return Account{}, inspected(err, ErrBotToken)
	}
	return Account{Name: cmp.Or(u.Profile.DisplayName, u.RealName, u.Name), Gone: u.Deleted}, nil
}

// Socket asks for a Socket Mode connection, and makes none. Errors wrap
// ErrAppToken, or ErrScope without connections:write. Slack need not answer that
// more than once in a minute.
func (i *Inspector) Socket(ctx context.Context) error {
	_, _, err := i.client.StartSocketModeContext(ctx)
	if err != nil {
		return inspected(err, ErrAppToken)
	}
	return nil
}

// errorCode is what the codes of Slack's errors look like.
var errorCode = regexp.MustCompile(`^[a-z_]{1,60}$`)

// inspected says what became of a question in few words. refused is what it
// means that the token is no good.
func inspected(err, refused error) error {
	if limited, ok := errors.AsType[*api.RateLimitedError](err); ok {
		return fmt.Errorf("slack was asked too often; it answers again in %s", limited.RetryAfter)
	}
	if status, ok := errors.AsType[api.StatusCodeError](err); ok {
		return fmt.Errorf("slack answered %d", status.Code)
	}
	if way, ok := errors.AsType[*url.Error](err); ok { // the address says nothing
		return fmt.Errorf("slack cannot be reached: %w", way.Err)
	}
	said, ok := errors.AsType[api.SlackErrorResponse](err)
	switch {
	case !ok: // it may repeat what was sent
		return errors.New("what answers does not speak as Slack does")
	case !errorCode.MatchString(said.Err):
		return errors.New("slack refused the question")
	case said.Err == "missing_scope":
		return ErrScope
	case unwanted(said):
		return fmt.Errorf("%w (%s)", refused, said.Err)
	}
	return fmt.Errorf("slack answered %s", said.Err)
}
