package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

const gitPrefix = "/broker/git/"

// The two services of smart HTTP: fetching and pushing.
const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// Credentials gives access to one repository at the code host.
type Credentials interface {
	// GitCredential returns the user and password for the repository of a key,
	// narrowed to it. It is asked once per request and may keep what it gave
	// while that is good. Its error holds no secret.
	GitCredential(ctx context.Context, repoKey string) (user, password string, err error)
}

// gitHost is the upstream of the git proxy.
type gitHost struct {
	base        *url.URL
	credentials Credentials
}

// newGitHost returns nil when there is to be no git.
func newGitHost(rawURL string, c Credentials) (*gitHost, error) {
	if rawURL == "" && c == nil {
		return nil, nil
	}
	if rawURL == "" || c == nil {
		return nil, errors.New("git host: an address and credentials are needed together")
	}
	base, err := parseBase(rawURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("git host: %w", err)
	case base.RawQuery != "":
		return nil, errors.New("git host: address must have no query")
	case base.Scheme == "http" && !isLoopback(base.Hostname()):
		return nil, errors.New("git host: http:// would send credentials in the clear; use https://")
	}
	return &gitHost{base: base, credentials: c}, nil
}

// serveGit answers /broker/git/OWNER/NAME.git/….
func (b *Broker) serveGit(v *visit) error {
	if b.git == nil {
		return refuse(http.StatusNotFound, codeNotFound, "no code host is configured")
	}
	rest, err := gitPath(v)
	if err != nil {
		return err
	}
	switch rest {
	case "info/refs":
		return b.advertise(v)
	case uploadPack:
		return b.fetch(v)
	case receivePack:
		return b.push(v)
	}
	if strings.HasPrefix(rest, "info/lfs") {
		return refuse(http.StatusForbidden, codeNotFound, "Git LFS is not available to a turn; its files stay pointers")
	}
	return refuse(http.StatusForbidden, codeNotFound, "only git's smart HTTP protocol is served")
}

// gitPath returns what follows the repository, if that is the granted one.
func gitPath(v *visit) (rest string, err error) {
	parts := strings.SplitN(strings.TrimPrefix(v.r.URL.Path, gitPrefix), "/", 3)
	if len(parts) < 3 {
		return "", refuse(http.StatusForbidden, codeNotFound, "the path of a repository is OWNER/NAME.git")
	}
	name, ok := strings.CutSuffix(parts[0]+"/"+parts[1], ".git")
	switch {
	case !ok || !validRepo(name):
		return "", refuse(http.StatusForbidden, codeNotFound, "the path of a repository is OWNER/NAME.git")
	case v.grant.Repo == "":
		return "", refuse(http.StatusForbidden, codeRepo, "this turn has no repository")
	case !strings.EqualFold(name, v.grant.Repo): // ASCII both, so folding is the code host's
		return "", refuse(http.StatusForbidden, codeRepo,
			"this turn may reach %s only; submodules in other repositories cannot be fetched", v.grant.Repo)
	}
	return parts[2], nil
}

// advertise answers the first request of a fetch and of a push.
func (b *Broker) advertise(v *visit) error {
	if v.r.Method != http.MethodGet {
		return refuse(http.StatusMethodNotAllowed, codeMethod, "%s is not answered here", v.r.Method)
	}
	service, _ := strings.CutPrefix(v.r.URL.RawQuery, "service=")
	switch {
	case service != uploadPack && service != receivePack:
		return refuse(http.StatusForbidden, codeNotFound, "only git's smart HTTP protocol is served")
	case service == receivePack && v.grant.Push == "":
		return mayNotPush()
	}
	_, err := b.forward(v, errand{path: "info/refs", query: "service=" + service})
	return err
}

// fetch passes a request for objects on. It is opaque here: whatever it asks,
// it asks of the granted repository, and reads.
func (b *Broker) fetch(v *visit) error {
	if v.r.Method != http.MethodPost {
		return refuse(http.StatusMethodNotAllowed, codeMethod, "%s is not answered here", v.r.Method)
	}
	encoding := v.r.Header.Get("Content-Encoding")
	if encoding != "" && encoding != "gzip" {
		return refuse(http.StatusUnsupportedMediaType, codeMalformed, "a request may be compressed with gzip only")
	}
	_, err := b.forward(v, errand{path: uploadPack, body: v.body(), size: v.r.ContentLength, encoding: encoding})
	return err
}

func mayNotPush() *refusal {
	return refuse(http.StatusForbidden, codePush, "this turn may not push")
}

// errand is one request to the code host.
type errand struct {
	path, query string
	// body is nil for a GET; size is -1 when it is not known.
	body     io.Reader
	size     int64
	encoding string
}

// gitProtocol is how a client offers versions of the protocol.
var gitProtocol = regexp.MustCompile(`^[a-z0-9=.:-]{1,64}$`)

// request is made from scratch, with the repository spelled as it was granted.
func (h *gitHost) request(v *visit, e errand) *http.Request {
	u := h.base.JoinPath(v.grant.Repo+".git", e.path)
	u.RawQuery = e.query
	req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{}}).WithContext(v.r.Context())
	if e.body != nil {
		req.Method, req.Body, req.ContentLength = http.MethodPost, io.NopCloser(e.body), e.size
		req.Header.Set("Content-Type", "application/x-"+e.path+"-request")
		req.Header.Set("Accept", "application/x-"+e.path+"-result")
	}
	if e.encoding != "" {
		req.Header.Set("Content-Encoding", e.encoding)
	}
	if p := v.r.Header.Get("Git-Protocol"); gitProtocol.MatchString(p) {
		req.Header.Set("Git-Protocol", p)
	}
	req.Header.Set("User-Agent", "git/ship") // code hosts ask for git in it
	return req
}

// forward asks the code host and passes its answer on as it comes.
func (b *Broker) forward(v *visit, e errand) (status int, err error) {
	user, password, err := b.git.credentials.GitCredential(v.r.Context(), v.grant.RepoKey)
	if err == nil && password == "" {
		err = errors.New("credential is empty")
	}
	if err != nil {
		return 0, refuse(http.StatusBadGateway, codeCredentials, "no access to %s could be had just now", v.grant.Repo).because(err)
	}
	v.tick()
	req := b.git.request(v, e)
	req.SetBasicAuth(user, password)
	_, basic, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	resp, err := b.transport.RoundTrip(req)
	if err != nil {
		return 0, unreachable("the code host", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, hostRefused(v, resp, []string{password, basic})
	}
	passHeaders(v.w.Header(), resp.Header, []string{"Content-Type", "Cache-Control", "Expires", "Pragma"}, password)
	v.w.WriteHeader(resp.StatusCode)
	return resp.StatusCode, v.relay(v.w, resp.Body)
}

// hostRefused makes a sentence of what the code host said. Its 401 is about our
// credential: passed on, git would ask a person for another.
func hostRefused(v *visit, resp *http.Response, secrets []string) *refusal {
	switch {
	case isRedirect(resp.StatusCode):
		return refuse(http.StatusBadGateway, codeRefused,
			"the code host says that %s is elsewhere; was it renamed or moved?", v.grant.Repo)
	case resp.StatusCode == http.StatusUnauthorized:
		return refuse(http.StatusBadGateway, codeCredentials, "the code host did not accept the access to %s", v.grant.Repo)
	case resp.StatusCode < http.StatusBadRequest:
		return refuse(http.StatusBadGateway, codeRefused, "the code host answered with status %d", resp.StatusCode)
	}
	said := ""
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		said = ": " + excerpt(resp.Body, secrets)
	}
	return refuse(resp.StatusCode, codeRefused, "the code host answered with status %d%s", resp.StatusCode, said)
}

// excerpt is the beginning of a text without any of the secrets, also not the
// half of one at its end.
func excerpt(r io.Reader, secrets []string) string {
	var b bytes.Buffer
	write := b.Write
	for _, s := range secrets {
		write = (&scrub{write: write, secret: []byte(s)}).Write
	}
	if said, err := io.ReadAll(io.LimitReader(r, 1<<10)); err == nil {
		_, _ = write(said) // a Buffer takes everything
	}
	return strings.ToValidUTF8(b.String(), "?")
}
