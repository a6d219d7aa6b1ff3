package githubtest

import (
	"net/http"
	"strconv"
	"time"

	"ship/bot/standin"
)

// Fault is something that goes wrong. It strikes on a route, as in "POST
// /repos/{owner}/{repo}/pulls", "POST /graphql", or "GIT receive-pack".
type Fault = standin.Fault

// SecondaryLimit is GitHub's answer to writing too fast.
func SecondaryLimit(route string, retryAfter time.Duration) Fault {
	return Fault{
		On: route, Status: http.StatusForbidden,
		Header: http.Header{"Retry-After": {strconv.Itoa(int(retryAfter.Seconds()))}},
		Body:   `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`,
	}
}

// PrimaryLimit is GitHub's answer when the hour's requests are used up.
func PrimaryLimit(route string, reset time.Time) Fault {
	return Fault{
		On: route, Status: http.StatusForbidden,
		Header: http.Header{
			"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"0"},
			"X-Ratelimit-Reset": {strconv.FormatInt(reset.Unix(), 10)},
		},
		Body: `{"message":"API rate limit exceeded for installation.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}`,
	}
}
