package linear

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // for the page
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ship/session"
)

const (
	// defaultAuthorizeURL is where an admin agrees to an installation.
	defaultAuthorizeURL = "https://linear.app/oauth/authorize"
	// installTime bounds what the last step asks Linear and the vault for.
	installTime = 20 * time.Second
	// maxCode bounds a code, of which nothing else is known.
	maxCode = 512
)

//go:embed install.html
var installPage string

// InstallLink is where an admin of a workspace begins to install the app, good
// for a day and for one workspace. Whoever has it can have ship work for their
// workspace.
func InstallLink(s Settings, publicURL string, now time.Time) (string, error) {
	switch {
	case s.Grant != GrantCode:
		return "", fmt.Errorf("linear: with grant: %s there is nothing to install; set linear.grant to %s", cmp.Or(s.Grant, GrantClient), GrantCode)
	case publicURL == "":
		return "", errors.New("linear: public_url is not set, and browsers have to come back there")
	}
	n, err := newNotary(installKeys(s))
	if err != nil {
		return "", fmt.Errorf("linear: %w", err)
	}
	ticket, err := n.sign(kindTicket, newSlip(now.Add(ticketTime)), "")
	if err != nil {
		return "", fmt.Errorf("linear: %w", err)
	}
	return strings.TrimRight(publicURL, "/") + InstallPath + "?" + url.Values{"ticket": {ticket}}.Encode(), nil
}

// installKeys are those that tokens are sealed with, or made of.
func installKeys(s Settings) []string {
	if len(s.TokenKey) == 0 {
		return []string{s.ClientSecret.Reveal()}
	}
	return s.TokenKey.Reveal()
}

// installPages are there where admins have to install the app, and can come
// back.
func installPages(c Config, tokens *Tokens) (map[string]http.Handler, error) {
	if c.Grant != GrantCode || c.PublicURL == "" {
		return nil, nil
	}
	i, err := newInstaller(c, tokens)
	if err != nil {
		return nil, err
	}
	return map[string]http.Handler{
		"GET " + InstallPath:  i.guarded(i.begin),
		"GET " + callbackPath: i.guarded(i.finish),
	}, nil
}

// installer has admins install the app in their workspaces: begin sends a
// browser with a ticket to Linear, finish takes it back with a code.
type installer struct {
	clientID, authorizeURL, callback string
	// cookie holds what a state is bound to, secure over https only.
	cookie string
	secure bool
	page   *template.Template

	notary    notary
	tokens    *Tokens
	vault     session.Vault
	apiURL    string
	transport http.RoundTripper
	log       *slog.Logger
	now       func() time.Time
}

func newInstaller(c Config, tokens *Tokens) (*installer, error) {
	n, err := newNotary(installKeys(c.Settings))
	if err != nil {
		return nil, fmt.Errorf("linear: %w", err)
	}
	page, err := template.New("install").Parse(installPage)
	if err != nil {
		return nil, fmt.Errorf("linear: read the page: %w", err)
	}
	i := &installer{
		clientID: c.ClientID, authorizeURL: authorizeURL(c.TokenURL), callback: strings.TrimRight(c.PublicURL, "/") + callbackPath,
		cookie: "ship-linear", page: page, notary: n, tokens: tokens, vault: c.Vault,
		apiURL: c.APIURL, transport: c.Transport, log: c.Logger, now: tokens.now,
	}
	if strings.HasPrefix(c.PublicURL, "https:") {
		i.cookie, i.secure = "__Host-"+i.cookie, true
	}
	return i, nil
}

// authorizeURL belongs to a token address. Linear has it on another host; what
// stands in for Linear has both side by side.
func authorizeURL(tokenURL string) string {
	if stem, ok := strings.CutSuffix(tokenURL, "/token"); ok && tokenURL != DefaultTokenURL {
		return stem + "/authorize"
	}
	return defaultAuthorizeURL
}

// guarded sees to it that nothing of a page stays anywhere, or runs.
func (i *installer) guarded(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Referrer-Policy", "no-referrer") // the address has the ticket, or the code
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h(w, r)
	})
}

// told is what a browser is told.
type told struct {
	status int
	Title  string
	Lines  []string
}

func no(status int, lines ...string) told {
	return told{status: status, Title: "ship was not installed", Lines: lines}
}

func (i *installer) tell(w http.ResponseWriter, t told) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(t.status)
	_ = i.page.Execute(w, t) // the browser left
}

// anotherTicket is what helps whoever has none that is good.
const anotherTicket = "Ask whoever runs ship for another link: `ship setup linear --install` prints one."

// begin sends a browser that has a ticket to Linear. It changes nothing here,
// so it may be opened as often as one likes.
func (i *installer) begin(w http.ResponseWriter, r *http.Request) {
	ticket, err := i.notary.read(kindTicket, r.URL.Query().Get("ticket"), "", i.now())
	switch {
	case errors.Is(err, errStaleSlip):
		i.tell(w, no(http.StatusForbidden, "This link was good for a day, and that is over.", anotherTicket))
		return
	case err != nil:
		i.tell(w, no(http.StatusForbidden, "This is not a link that this ship gave out.", anotherTicket))
		return
	}
	bound := rand.Text()
	state := newSlip(i.now().Add(stateTime))
	state.Ticket = ticket.ID
	signed, err := i.notary.sign(kindState, state, bound)
	if err != nil {
		i.tell(w, no(http.StatusInternalServerError, "Something is wrong with ship itself."))
		return
	}
	i.remember(w, bound, stateTime)
	http.Redirect(w, r, i.authorizeURL+"?"+url.Values{
		"client_id": {i.clientID}, "redirect_uri": {i.callback}, "response_type": {"code"},
		"scope": {scopes}, "actor": {"app"}, "prompt": {"consent"}, "state": {signed},
	}.Encode(), http.StatusSeeOther)
}

// remember has the browser keep a value, or forget it with a time of zero. Lax,
// for it comes back by a link from Linear.
func (i *installer) remember(w http.ResponseWriter, value string, d time.Duration) {
	age := int(d.Seconds())
	if age == 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: i.cookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: i.secure, SameSite: http.SameSiteLaxMode,
	})
}

// finish takes a browser back that an admin agreed in.
func (i *installer) finish(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), installTime)
	defer cancel()
	q := r.URL.Query()
	var bound string
	if c, err := r.Cookie(i.cookie); err == nil {
		bound = c.Value
	}
	state, err := i.notary.read(kindState, q.Get("state"), bound, i.now())
	switch {
	case errors.Is(err, errStaleSlip):
		i.tell(w, no(http.StatusForbidden, "That took more than an hour. Open the link that you were given again."))
		return
	case err != nil || bound == "":
		i.tell(w, no(http.StatusForbidden, "This does not come from the page that was opened in this browser. Open the link that you were given again."))
		return
	}
	i.remember(w, "", 0)
	i.tell(w, i.install(ctx, state, q.Get("code")))
}

// install exchanges the code and keeps what it is good for. A state is good for
// one try, and its ticket for one workspace, in which it may be used again.
func (i *installer) install(ctx context.Context, state slip, code string) told {
	if code == "" || len(code) > maxCode {
		return no(http.StatusForbidden, "Linear sent no code: it seems that nobody agreed to the installation. Open the link that you were given again.")
	}
	first, err := i.claim(ctx, kindState, state.ID, rand.Text())
	switch {
	case err != nil:
		return i.broken(ctx, "take the state of an installation", err)
	case !first:
		return no(http.StatusForbidden, "This page was opened before. If ship is not in your workspace by now, open the link that you were given again.")
	}
	grant, err := i.tokens.Exchange(ctx, code, i.callback)
	if err != nil {
		return i.refused(ctx, err)
	}
	viewer, err := newVisit(grant, i.apiURL, i.transport).Viewer(ctx)
	if err == nil && !viewer.App {
		err = errors.New("the token acts as a person")
	}
	if err != nil {
		i.log.WarnContext(ctx, "linear did not say which workspace the app was installed in", "err", err)
		return no(http.StatusBadGateway, "Linear did not say which workspace this is. Open the link that you were given again.")
	}
	return i.keep(ctx, state.Ticket, viewer, grant)
}

func (i *installer) keep(ctx context.Context, ticket string, v Viewer, g Grant) told {
	ours, err := i.claim(ctx, kindTicket, ticket, v.Organization)
	switch {
	case err != nil:
		return i.broken(ctx, "take the ticket of an installation", err)
	case !ours:
		return no(http.StatusForbidden, "This link was used for another workspace already.", anotherTicket)
	}
	if err := i.tokens.Keep(ctx, v.Organization, g); err != nil {
		return i.broken(ctx, "keep the access to a new workspace", err)
	}
	i.log.InfoContext(ctx, "installed in a workspace of linear", "organization", v.Organization, "name", v.Workspace)
	return told{status: http.StatusOK, Title: "ship is in " + v.Workspace, Lines: []string{
		"In Linear's settings, under Applications, choose the teams that " + v.Name + " may see.",
		"Then delegate an issue to " + v.Name + ", or mention it in a comment. It answers within seconds.",
		"This page can be closed.",
	}}
}

// claim makes sure that a slip serves one purpose: it is true for the value
// that came first, and each time that it comes again.
func (i *installer) claim(ctx context.Context, kind, id, value string) (bool, error) {
	return i.vault.Swap(ctx, "linear."+i.clientID+"."+kind+"."+id, 0, []byte(value), ticketTime+stateTime)
}

// refused says why there is no grant for a code.
func (i *installer) refused(ctx context.Context, err error) told {
	if r, ok := errors.AsType[*refusal](err); ok && r.code == "invalid_grant" {
		return no(http.StatusForbidden, "Linear does not take this code, or not any more. Open the link that you were given again.")
	}
	return i.broken(ctx, "exchange the code of an installation", err)
}

func (i *installer) broken(ctx context.Context, what string, err error) told {
	i.log.ErrorContext(ctx, "an installation in linear did not succeed", "step", what, "err", err)
	return no(http.StatusBadGateway, "Something went wrong between ship and Linear. Open the link that you were given again; whoever runs ship finds the cause in the log.")
}
