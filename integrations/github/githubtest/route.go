package githubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ship/bot/standin"
)

const (
	apiPrefix = "/api/v3"
	maxBody   = 4 << 20
)

// call is one request to the API, with what was learned about it.
type call struct {
	*http.Request
	body  []byte
	token *token
	repo  *repository
	// header of the answer.
	header http.Header
}

// refusal is an error with GitHub's status.
type refusal struct {
	status  int
	message string
	// field and detail are for 422.
	field, detail string
}

func (r refusal) Error() string { return r.message }

func (r refusal) body() object {
	b := object{"message": r.message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(r.status)}
	if r.detail != "" {
		b["errors"] = []object{{"resource": "Any", "code": "custom", "field": r.field, "message": r.detail}}
	}
	return b
}

var (
	errNotFound = refusal{status: http.StatusNotFound, message: "Not Found"}
	errLacking  = refusal{status: http.StatusForbidden, message: "Resource not accessible by integration"}
)

func invalid(field, detail string) refusal {
	return refusal{status: http.StatusUnprocessableEntity, message: "Validation Failed", field: field, detail: detail}
}

// object is a JSON object.
type object = map[string]any

// handler does one request. It holds mu.
type handler func(c *call) (status int, answer any, err error)

// route is one line of the API: who may, and what it does.
type route struct {
	pattern string
	// needs are permissions of which the token must have one. For the app's
	// own routes, asApp.
	needs  []string
	handle handler
}

// asApp marks the routes that want a JSON web token, asInstallation those that
// want an installation's token and no repository.
var asApp, asInstallation = []string{"app"}, []string{"installation"}

func (s *Server) routes() []route {
	const r = "/repos/{owner}/{repo}"
	read := []string{"metadata=read"}
	talkRead, talk := []string{"issues=read", "pull_requests=read"}, []string{"issues=write", "pull_requests=write"}
	pullRead, pull := []string{"pull_requests=read"}, []string{"pull_requests=write"}
	checkRead, checkWrite := []string{"checks=read"}, []string{"checks=write"}
	return []route{
		{"GET /app", asApp, s.getApp},
		{"GET /app/hook/config", asApp, s.getHook},
		{"GET /app/installations", asApp, s.listInstallations},
		{"GET /installation/repositories", asInstallation, s.listRepositories},
		{"GET /users/{username}", asInstallation, s.getUser},
		{"GET /search/users", asInstallation, s.searchUsers},
		{"GET /app/hook/deliveries", asApp, s.listDeliveries},
		{"POST /app/hook/deliveries/{delivery_id}/attempts", asApp, s.redeliverOne},
		{"GET /app/installations/{installation_id}", asApp, s.getInstallation},
		{"POST /app/installations/{installation_id}/access_tokens", asApp, s.createToken},
		{"GET " + r + "/installation", asApp, s.findInstallation},
		{"GET " + r, read, s.getRepo},
		{"GET " + r + "/branches/{branch...}", []string{"contents=read"}, s.getBranch},
		{"GET " + r + "/commits", []string{"contents=read"}, s.listCommits},
		{"GET " + r + "/collaborators/{username}/permission", read, s.getPermission},
		{"GET " + r + "/issues/{number}", talkRead, s.getIssue},
		{"GET " + r + "/issues/{number}/comments", talkRead, s.listComments},
		{"POST " + r + "/issues/{number}/comments", talk, s.createComment},
		{"PATCH " + r + "/issues/comments/{id}", talk, s.updateComment},
		{"DELETE " + r + "/issues/comments/{id}", talk, s.deleteComment},
		{"POST " + r + "/issues/comments/{id}/reactions", talk, s.reactToComment},
		{"POST " + r + "/issues/{number}/reactions", talk, s.reactToIssue},
		{"GET " + r + "/pulls", pullRead, s.listPulls},
		{"POST " + r + "/pulls", pull, s.createPull},
		{"GET " + r + "/pulls/{number}", pullRead, s.getPull},
		{"GET " + r + "/pulls/{number}/reviews", pullRead, s.listReviews},
		{"GET " + r + "/pulls/{number}/comments", pullRead, s.listInline},
		{"POST " + r + "/pulls/{number}/comments/{id}/replies", pull, s.createReply},
		{"PATCH " + r + "/pulls/comments/{id}", pull, s.updateInline},
		{"DELETE " + r + "/pulls/comments/{id}", pull, s.deleteInline},
		{"POST " + r + "/pulls/comments/{id}/reactions", pull, s.reactToInline},
		{"POST " + r + "/check-runs", checkWrite, s.createCheck},
		{"PATCH " + r + "/check-runs/{id}", checkWrite, s.updateCheck},
		{"GET " + r + "/commits/{ref}/check-runs", checkRead, s.listChecks},
	}
}

func (s *Server) handler() http.Handler {
	api := http.NewServeMux()
	for _, r := range s.routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		api.HandleFunc(method+" "+apiPrefix+path, func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, r) })
	}
	api.HandleFunc("POST /api/graphql", s.serveGraphQL)
	api.HandleFunc("POST "+apiPrefix+"/app-manifests/{code}/conversions", s.convert)
	api.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.Note("no such route: %s %s", r.Method, r.URL.Path)
		writeJSON(w, errNotFound.status, errNotFound.body())
	})
	git := http.NewServeMux()
	git.HandleFunc("POST /settings/apps/new", s.newApp)
	git.HandleFunc("POST /organizations/{org}/settings/apps/new", s.newApp)
	git.HandleFunc("GET /{owner}/{repo}/info/refs", s.serveGit)
	git.HandleFunc("POST /{owner}/{repo}/{action}", s.serveGit)
	return standin.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			api.ServeHTTP(w, r)
		} else {
			git.ServeHTTP(w, r)
		}
	}))
}

// serve does one request of the REST API.
func (s *Server) serve(w http.ResponseWriter, req *http.Request, r route) {
	if s.Strike(w, req, r.pattern) {
		return
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	if err != nil {
		return // the client left
	}
	described := s.described(req, body)
	if v := s.opts.Validator; v != nil {
		if err := v.Request(described, body); err != nil {
			s.Note("%s: request: %v", r.pattern, err)
			writeJSON(w, http.StatusUnprocessableEntity, refusal{status: 422, message: "Problems parsing JSON"}.body())
			return
		}
	}
	c := &call{Request: req, body: body, header: w.Header()}
	status, answer := s.answer(c, r)
	s.send(w, described, status, answer)
}

// described is the request as the API's description knows it.
func (s *Server) described(req *http.Request, body []byte) *http.Request {
	d := req.Clone(req.Context())
	d.URL = &url.URL{Scheme: "https", Host: "api.github.com", Path: strings.TrimPrefix(req.URL.EscapedPath(), apiPrefix), RawQuery: req.URL.RawQuery}
	d.Body = io.NopCloser(bytes.NewReader(body))
	return d
}

func (s *Server) send(w http.ResponseWriter, described *http.Request, status int, answer any) {
	var b []byte
	if answer != nil {
		var err error
		if b, err = json.Marshal(answer); err != nil {
			panic("githubtest: " + err.Error()) // the answers are maps of plain values
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	if v := s.opts.Validator; v != nil && status < 300 {
		if err := v.Response(described, status, w.Header(), b); err != nil {
			s.Note("%s %s: response: %v", described.Method, described.URL.Path, err)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client left
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client left
}

// answer does a request under the lock, as far as its token allows.
func (s *Server) answer(c *call, r route) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.authorise(c, r)
	if err == nil {
		var status int
		var answer any
		if status, answer, err = r.handle(c); err == nil {
			return status, answer
		}
	}
	refused, ok := err.(refusal)
	if !ok {
		s.Note("%s: %v", r.pattern, err)
		refused = refusal{status: http.StatusInternalServerError, message: err.Error()}
	}
	return refused.status, refused.body()
}

// authorise finds the token and the repository, and checks that the one
// reaches the other with the right permission.
func (s *Server) authorise(c *call, r route) error {
	if slices.Equal(r.needs, asApp) {
		return s.verifyApp(c.Request)
	}
	if c.token = s.bearer(c.Request); c.token == nil {
		return unauthorised("Bad credentials")
	}
	if slices.Equal(r.needs, asInstallation) {
		return nil
	}
	c.repo = s.repo(c.PathValue("owner") + "/" + c.PathValue("repo"))
	if !c.token.reaches(c.repo) {
		return errNotFound
	}
	if !c.token.allows(r.needs...) {
		c.header.Set("X-Accepted-GitHub-Permissions", strings.Join(r.needs, "; "))
		return errLacking
	}
	return nil
}

// decode reads the body into a value.
func (c *call) decode(into any) error {
	if len(c.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.body, into); err != nil {
		return refusal{status: http.StatusBadRequest, message: "Problems parsing JSON"}
	}
	return nil
}

// number reads a number out of the path; zero for none, which nothing has.
func (c *call) number(name string) int64 {
	n, err := strconv.ParseInt(c.PathValue(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// issue is what {number} names.
func (c *call) issue() (*issue, error) {
	if i := c.repo.issues[int(c.number("number"))]; i != nil {
		return i, nil
	}
	return nil, errNotFound
}

// pullRequest is what {number} names.
func (c *call) pullRequest() (*issue, error) {
	i, err := c.issue()
	if err == nil && i.pull == nil {
		err = errNotFound
	}
	return i, err
}

// page cuts one page out of a list and links to the others.
func page[T any](c *call, all []T) []T {
	query := c.URL.Query()
	size := min(atLeastOne(query.Get("per_page"), 30), 100)
	n := atLeastOne(query.Get("page"), 1)
	last := max((len(all)+size-1)/size, 1)
	var links []string
	link := func(page int, rel string) {
		query.Set("page", strconv.Itoa(page))
		links = append(links, fmt.Sprintf(`<http://%s%s?%s>; rel="%s"`, c.Host, c.URL.Path, query.Encode(), rel))
	}
	if n > 1 {
		link(n-1, "prev")
		link(1, "first")
	}
	if n < last {
		link(n+1, "next")
		link(last, "last")
	}
	if len(links) > 0 {
		c.header.Set("Link", strings.Join(links, ", "))
	}
	from := min((n-1)*size, len(all))
	return all[from:min(from+size, len(all))]
}

func atLeastOne(s string, standard int) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return standard
	}
	return n
}
