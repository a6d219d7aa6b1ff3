package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	api "github.com/slack-go/slack"

	"ship/config"
)

const (
	// patience is how long something that may be said later waits for its turn.
	// It stands in a line with what must not wait, such as a stop.
	patience = 10 * time.Second
	// brief is the longest refusal that is waited for with the request at hand.
	brief = 4 * time.Second
	// maxRest is the longest that something is put off because Slack said so. Who
	// says more is not Slack, and nothing would ever come of it.
	maxRest = time.Hour
	// callTimeout is for one request.
	callTimeout = 20 * time.Second
)

// app speaks with the workspace that ship is installed in.
type app struct {
	client   *api.Client
	governor *governor
	log      *slog.Logger
	// url is where the methods are, and doer what calls them, with the token: see
	// ask.
	url   string
	token config.Secret
	doer  *http.Client
	// known is who we are, once that was asked for. It stays the same for as long
	// as the token does.
	known atomic.Pointer[identity]
	// directory is what was learned of others.
	directory *directory
}

// identity is who we are in Slack.
type identity struct {
	team, enterprise string
	// user is our bot user, and bot its bot.
	user, bot string
	// url is the workspace's address.
	url string
}

func newApp(c Config) *app {
	doer := &http.Client{Transport: c.Transport, Timeout: callTimeout, CheckRedirect: stay}
	at := strings.TrimRight(c.APIURL, "/") + "/"
	return &app{
		client: api.New(c.BotToken.Reveal(), api.OptionAPIURL(at), api.OptionHTTPClient(doer)),
		url:    at, token: c.BotToken, doer: doer,
		governor: newGovernor(c.Quota), log: c.Logger, directory: newDirectory(time.Now),
	}
}

// stay follows no redirect: it would take the token along, and the message.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// self returns who we are. In the beginning it asks.
func (a *app) self(ctx context.Context) (identity, error) {
	if known := a.known.Load(); known != nil {
		return *known, nil
	}
	var who *api.AuthTestResponse
	err := a.call(ctx, Thinking, call{method: "auth.test"}, func(ctx context.Context) (err error) {
		who, err = a.client.AuthTestContext(ctx)
		return err
	})
	if err != nil {
		return identity{}, fmt.Errorf("ask who we are: %w", err)
	}
	self := identity{team: who.TeamID, enterprise: who.EnterpriseID, user: who.UserID, bot: who.BotID, url: who.URL}
	a.known.Store(&self)
	return self, nil
}

// notYet: it is not the turn of a request for some time yet, or Slack refused
// it for coming too soon. Nothing was done.
type notYet struct{ wait time.Duration }

func (l *notYet) Error() string { return fmt.Sprintf("slack's rate leaves no room for %s", l.wait) }

// errPatience is the cause of a request that waited too long for its turn.
var errPatience = errors.New("waited too long for slack's rate")

// call makes one request when its turn has come, and once more if Slack refuses
// it for a moment only: it has limits that it tells nobody of beforehand, such as
// how often one message may change. What cannot be had soon is *notYet.
func (a *app) call(ctx context.Context, p Priority, c call, request func(context.Context) error) error {
	soon, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	for again := false; ; again = true {
		err := a.governor.acquire(soon, p, c)
		if errors.Is(err, errPatience) {
			return &notYet{wait: patience}
		}
		if err != nil {
			return err
		}
		err = a.send(ctx, c, request)
		early, refused := errors.AsType[*notYet](err)
		if !refused || again || early.wait > brief {
			return err
		}
	}
}

// try is call for progress: without room for it right now nothing is done, and
// it is *notYet.
func (a *app) try(ctx context.Context, p Priority, c call, request func(context.Context) error) error {
	wait, err := a.governor.try(ctx, p, c)
	if err != nil {
		return err
	}
	if wait > 0 {
		return &notYet{wait: wait}
	}
	return a.send(ctx, c, request)
}

// send makes a request. A refusal for the rate is told to all gateways.
func (a *app) send(ctx context.Context, c call, request func(context.Context) error) error {
	limited := new(api.RateLimitedError)
	timely, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := request(timely)
	if _, garbled := errors.AsType[*strconv.NumError](err); garbled { // the library does not say more of such a refusal
		limited.RetryAfter = limitWait
	} else if !errors.As(err, &limited) {
		return err
	}
	if err := a.governor.refused(ctx, c, limited.RetryAfter); err != nil {
		return err
	}
	return &notYet{wait: min(max(limited.RetryAfter, time.Second), maxRest)}
}
