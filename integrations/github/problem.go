package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v66/github"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"ship/bot"
	"ship/session"
)

// limited is the least wait after a rate limit that does not say how long.
const limited = time.Minute

// problem turns whatever went wrong into what people may read and whether it
// is worth repeating. A context that ended stays what it is: its cause says
// what to do.
func (a *app) problem(ctx context.Context, r repo, err error) error {
	var known *session.Problem
	if err == nil || errors.As(err, &known) {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("github: %w: %w", context.Cause(ctx), err)
	}
	p := classify(err, r)
	p.Err = fmt.Errorf("github: %w", err)
	if refused(err) == http.StatusUnauthorized {
		a.forget(r.installation)
	}
	return p
}

// unusable is for a key or ref that is not ours.
func unusable(err error) error {
	return &session.Problem{
		Say: "I lost track of where on GitHub this belongs. Please ask again in a new comment.",
		Err: fmt.Errorf("github: %w", err),
	}
}

func classify(err error, r repo) *session.Problem {
	var primary *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	var mint *ghinstallation.HTTPError
	var refusal *github.ErrorResponse
	var graph gqlerror.List
	switch {
	case errors.As(err, &primary):
		return wait(max(time.Until(primary.Rate.Reset.Time), time.Second))
	case errors.As(err, &secondary):
		if secondary.RetryAfter == nil {
			return wait(limited)
		}
		return wait(max(*secondary.RetryAfter, time.Second))
	case errors.As(err, &mint) && mint.Response != nil:
		return mintProblem(mint.Response, r)
	case errors.As(err, &refusal) && refusal.Response != nil:
		return refusalProblem(refusal, r)
	case errors.As(err, &graph):
		return graphProblem(graph)
	default: // the way to GitHub, or an answer that broke off
		return again()
	}
}

func again() *session.Problem {
	return &session.Problem{Say: "GitHub could not be reached. I keep trying.", Again: true}
}

func wait(d time.Duration) *session.Problem {
	return &session.Problem{Say: "GitHub asked me to slow down. I go on in a while.", Again: true, After: d}
}

// refused returns the status of an answer that was a refusal, or zero.
func refused(err error) int {
	var e *github.ErrorResponse
	if errors.As(err, &e) && e.Response != nil {
		return e.Response.StatusCode
	}
	return 0
}

// mintProblem: no token is to be had for the installation. The library leaves
// the body to us.
func mintProblem(resp *http.Response, r repo) *session.Problem {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close() // read-only
	var said struct{ Message string }
	_ = json.Unmarshal(body, &said) // no message then
	if after, ok := rateLimited(resp, said.Message); ok {
		return wait(after)
	}
	switch {
	case resp.StatusCode >= 500:
		return again()
	case resp.StatusCode == http.StatusUnauthorized:
		return &session.Problem{Say: "GitHub does not accept the app's key. Whoever runs me should check `github.app_id`, `github.private_key` and the machine's clock."}
	case resp.StatusCode == http.StatusForbidden:
		return suspended(r)
	default:
		return notInstalled(r)
	}
}

func suspended(r repo) *session.Problem {
	return &session.Problem{Say: fmt.Sprintf("The app's installation for `%s` is suspended. Its owner can unsuspend it in GitHub's settings.", r.owner)}
}

func notInstalled(r repo) *session.Problem {
	return &session.Problem{Say: fmt.Sprintf("I have no access to `%s`. Install the GitHub App on this repository and ask again.", r.fullName())}
}

func refusalProblem(e *github.ErrorResponse, r repo) *session.Problem {
	if after, ok := rateLimited(e.Response, e.Message); ok {
		return wait(after)
	}
	switch code := e.Response.StatusCode; {
	case code >= 500:
		return again()
	case code == http.StatusUnauthorized: // an old token: the next try has a new one
		return &session.Problem{Say: "GitHub did not accept my token. I try again with a new one.", Again: true}
	case code == http.StatusForbidden:
		return forbidden(e, r)
	case code == http.StatusNotFound && installationPath(e):
		return notInstalled(r)
	case code == http.StatusNotFound, code == http.StatusGone:
		return &session.Problem{Say: fmt.Sprintf("That is not there any more on GitHub, or I may not see it in `%s`. Check that the GitHub App is installed on this repository.", r.fullName())}
	default:
		return &session.Problem{Say: "GitHub refused: " + sentence(e) + " Whoever runs me finds the details in the log."}
	}
}

// installationPath: it was the installation that was asked for.
func installationPath(e *github.ErrorResponse) bool {
	return e.Response.Request != nil && strings.Contains(e.Response.Request.URL.Path, "installation")
}

// forbidden names the permission that is missing. GitHub says in a header
// which would do.
func forbidden(e *github.ErrorResponse, r repo) *session.Problem {
	if strings.Contains(e.Message, "not accessible by integration") {
		need := "one more permission"
		if accepted := e.Response.Header.Get("X-Accepted-GitHub-Permissions"); accepted != "" {
			need = "the permission `" + harmless(accepted) + "`"
		}
		return &session.Problem{Say: fmt.Sprintf("The GitHub App lacks %s on `%s`. Add it in the app's settings, and let the installation accept it.", need, r.fullName())}
	}
	return &session.Problem{Say: "GitHub forbids that: " + sentence(e) + " An owner of the repository can change it."}
}

// sentence returns what GitHub said, fit to be quoted.
func sentence(e *github.ErrorResponse) string {
	said := e.Message
	for _, detail := range e.Errors {
		if detail.Message != "" {
			said += ": " + detail.Message
		}
	}
	return strings.TrimRight(harmless(said), ".") + "."
}

// harmless takes the markup out of a foreign word or two.
func harmless(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("`<>@[]|*", r) {
			return -1
		}
		return r
	}, s)
	return bot.Prefix(s, 300)
}

// rateLimited reads from an answer whether, and for how long, GitHub wants to
// be left alone. Both 403 and 429 can mean that.
func rateLimited(resp *http.Response, message string) (time.Duration, bool) {
	if resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusTooManyRequests {
		return 0, false
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s >= 0 {
		return max(time.Duration(s)*time.Second, time.Second), true
	}
	if resp.Header.Get("X-Ratelimit-Remaining") == "0" {
		if reset, err := strconv.ParseInt(resp.Header.Get("X-Ratelimit-Reset"), 10, 64); err == nil {
			return max(time.Until(time.Unix(reset, 0)), time.Second), true
		}
		return limited, true
	}
	if resp.StatusCode == http.StatusTooManyRequests || strings.Contains(message, "rate limit") {
		return limited, true
	}
	return 0, false
}

// graphProblem: GraphQL refuses with 200 and a list of errors.
func graphProblem(list gqlerror.List) *session.Problem {
	said := list.Error()
	if strings.Contains(said, "rate limit") {
		return wait(limited)
	}
	if strings.Contains(said, "not accessible by integration") {
		return &session.Problem{Say: "The GitHub App lacks a permission for that: it needs `pull_requests=write` and `contents=write`. Add it in the app's settings, and let the installation accept it."}
	}
	if strings.Contains(said, "Something went wrong") {
		return again()
	}
	return &session.Problem{Say: "GitHub refused: " + strings.TrimRight(harmless(said), ".") + ". Whoever runs me finds the details in the log."}
}
