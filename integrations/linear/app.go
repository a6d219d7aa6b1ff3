package linear

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/Khan/genqlient/graphql"
	lru "github.com/hashicorp/golang-lru/v2"

	ql "ship/graphql/linear"
)

// maxWorkspaces whose clients are kept; a client is made again when it is needed.
const maxWorkspaces = 256

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
	a.workspaces.Add(organization, w)
	return w
}

// call makes one request of a cost, in points, when its turn has come.
func (w *workspace) call(ctx context.Context, p Priority, cost int, request func(graphql.Client) error) error {
	if err := w.governor.Acquire(ctx, w.id, p, cost); err != nil {
		return err
	}
	return request(w.client)
}
