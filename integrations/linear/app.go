package linear

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/Khan/genqlient/graphql"
	lru "github.com/hashicorp/golang-lru/v2"

	ql "ship/graphql/linear"
)

// maxWorkspaces whose clients are kept; a client is made again when it is needed.
const maxWorkspaces = 256

// patience is how long something that may be said later waits for its turn. It
// stands in a line with what must not wait, such as a stop.
const patience = 10 * time.Second

// What requests cost, in points of complexity, rounded up.
const (
	costWrite      = 3 // any mutation
	costViewer     = 3
	costActivity   = 8
	costActivities = 384
)

// app speaks with every workspace that ship is installed in.
type app struct {
	apiURL     string
	tokens     *Tokens
	governor   *Governor
	transport  http.RoundTripper
	log        *slog.Logger
	workspaces *lru.Cache[string, *workspace]
}

// workspace is one of them.
type workspace struct {
	id       string
	client   graphql.Client
	governor *Governor
	// self is who we are there, once it was asked for. It stays the same for as
	// long as the app is installed.
	self atomic.Pointer[identity]
}

// identity is what the access to a workspace is: for which user of ours, and
// where.
type identity struct {
	user, organization string
	// urlKey is the workspace's part of its addresses.
	urlKey string
}

func newApp(c Config, tokens *Tokens) *app {
	workspaces, err := lru.New[string, *workspace](maxWorkspaces)
	if err != nil {
		panic(err) // unreachable: the size is positive
	}
	return &app{
		apiURL: c.APIURL, tokens: tokens, governor: NewGovernor(c.Quota),
		transport: c.Transport, log: c.Logger, workspaces: workspaces,
	}
}

func (a *app) workspace(organization string) *workspace {
	if known, ok := a.workspaces.Get(organization); ok {
		return known
	}
	doer := &http.Client{Transport: &Transport{
		Organization: organization, Tokens: a.tokens, Governor: a.governor, Next: a.transport, Logger: a.log,
	}}
	w := &workspace{id: organization, client: ql.New(doer, a.apiURL), governor: a.governor}
	if before, found, _ := a.workspaces.PeekOrAdd(organization, w); found {
		return before
	}
	return w
}

// forget drops a workspace's client, and with it who we are there.
func (a *app) forget(organization string) { a.workspaces.Remove(organization) }

// all are the workspaces that we have access to.
func (a *app) all(ctx context.Context) ([]*workspace, error) {
	if !a.tokens.code {
		home, err := a.home(ctx)
		return []*workspace{home}, err
	}
	ids, err := a.tokens.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]*workspace, len(ids))
	for i, id := range ids {
		all[i] = a.workspace(id)
	}
	return all, nil
}

// home is the one workspace that the client's own token is good for, whatever it
// is asked for.
func (a *app) home(ctx context.Context) (*workspace, error) {
	who, err := a.workspace(a.tokens.prefix).identity(ctx, Moving)
	if err != nil {
		return nil, fmt.Errorf("ask which workspace is ours: %w", err)
	}
	return a.workspace(who.organization), nil
}

// notYet: it is not the turn of a request for some time yet.
type notYet struct{ wait time.Duration }

func (l *notYet) Error() string { return fmt.Sprintf("linear's rate leaves no room for %s", l.wait) }

// errPatience is the cause of a request that waited too long for its turn.
var errPatience = errors.New("waited too long for linear's rate")

// call makes one request of a cost, in points, when its turn has come. A thought
// that cannot be had soon is *notYet; what people wait for waits as well.
func (w *workspace) call(ctx context.Context, p Priority, cost int, request func(graphql.Client) error) error {
	if err := w.acquire(ctx, p, cost); err != nil {
		return err
	}
	return request(w.client)
}

func (w *workspace) acquire(ctx context.Context, p Priority, cost int) error {
	if p > Thinking {
		return w.governor.Acquire(ctx, w.id, p, cost)
	}
	soon, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	err := w.governor.Acquire(soon, w.id, p, cost)
	if errors.Is(err, errPatience) {
		return &notYet{wait: maxBlock}
	}
	return err
}

// try is call for progress: without room for it right now nothing is done, and
// it is *notYet. What waits behind it may be a stop, so it is soon given up.
func (w *workspace) try(ctx context.Context, p Priority, cost int, request func(graphql.Client) error) error {
	wait, err := w.governor.Try(ctx, w.id, p, cost)
	if err != nil {
		return err
	}
	if wait > 0 {
		return &notYet{wait: wait}
	}
	return request(hurried{w.client})
}

// errLate is the cause of a request for progress that took too long.
var errLate = errors.New("linear takes too long to show progress")

// hurried is a client that gives no request more time than patience.
type hurried struct{ graphql.Client }

func (h hurried) MakeRequest(ctx context.Context, in *graphql.Request, out *graphql.Response) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	return h.Client.MakeRequest(ctx, in, out)
}

// identity asks who we are in the workspace.
func (w *workspace) identity(ctx context.Context, p Priority) (identity, error) {
	if known := w.self.Load(); known != nil {
		return *known, nil
	}
	var who *ql.ReadViewerResponse
	err := w.call(ctx, p, costViewer, func(c graphql.Client) (err error) {
		who, err = ql.ReadViewer(ctx, c)
		return err
	})
	if err != nil {
		return identity{}, fmt.Errorf("ask who we are: %w", err)
	}
	i := identity{user: who.Viewer.Id, organization: who.Organization.Id, urlKey: who.Organization.UrlKey}
	w.self.Store(&i)
	return i, nil
}

// viewer returns the id of our user in the workspace.
func (w *workspace) viewer(ctx context.Context) (string, error) {
	i, err := w.identity(ctx, Thinking)
	return i.user, err
}
