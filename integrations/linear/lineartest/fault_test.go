package lineartest_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/Khan/genqlient/graphql"

	"ship/graphql/linear"
	"ship/integrations/linear/lineartest"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{Requests: 3, Complexity: 500})
	ctx := t.Context()
	header := func(name, want string) {
		t.Helper()
		if got := c.last.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := linear.ReadViewer(ctx, c); err != nil {
		t.Fatal(err)
	}
	header("X-RateLimit-Requests-Limit", "3")
	header("X-RateLimit-Requests-Remaining", "2")
	header("X-Complexity", "2.7")
	header("X-RateLimit-Complexity-Remaining", "497.3")
	millis, err := strconv.ParseInt(c.last.Get("X-RateLimit-Requests-Reset"), 10, 64)
	if left := time.Until(time.UnixMilli(millis)); err != nil || left < 59*time.Minute || left > hour {
		t.Errorf("it starts anew in %s, %v", left, err)
	}
	c.Spend(0, 300)
	_, err = linear.ReadIssue(ctx, c, c.issue) // costs more than is left
	c.mustFail(err, "RATELIMITED")
	c.Spend(2, 0)
	_, err = linear.ReadViewer(ctx, c)
	c.mustFail(err, "RATELIMITED")
	header("X-RateLimit-Requests-Remaining", "0")
	var status *graphql.HTTPError
	if !errors.As(err, &status) || status.StatusCode != http.StatusBadRequest {
		t.Errorf("got %v, want status 400", err)
	}
	c.Advance(hour)
	if _, err := linear.ReadIssue(ctx, c, c.issue); err != nil {
		t.Error(err)
	}
	c.Inject(lineartest.Limited("ReadIssue", time.Now().Add(time.Minute)))
	_, err = linear.ReadIssue(ctx, c, c.issue)
	c.mustFail(err, "RATELIMITED")
	header("X-RateLimit-Requests-Remaining", "5000")
}

func TestFaults(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	session, _ := c.Delegate(c.issue, "ada")
	say := func(ctx context.Context, n int) error {
		_, err := linear.CreateActivity(ctx, c, c.id(n), session, linear.Thought("x"), false)
		return err
	}
	count := func() int { return len(c.Session(session).Activities) }

	const name = "CreateActivity"
	c.Inject(lineartest.Fault{On: name, Status: 502, Body: "bad gateway", Skip: 1, Times: 2})
	var failed []bool
	for n := range 4 {
		failed = append(failed, say(t.Context(), n+1) != nil)
	}
	if failed[0] || !failed[1] || !failed[2] || failed[3] || c.Calls(name) != 4 || count() != 2 {
		t.Errorf("failed %v after %d calls, %d done", failed, c.Calls(name), count())
	}

	c.Inject(lineartest.Fault{On: name, Lost: true})
	if err := say(t.Context(), 10); err == nil || count() != 3 {
		t.Errorf("%v, %d done", err, count())
	}
	c.mustFail(say(t.Context(), 10), "INPUT_ERROR")

	c.Inject(lineartest.Failing(name, 200, "INTERNAL_SERVER_ERROR", "lock timeout"))
	c.mustFail(say(t.Context(), 11), "INTERNAL_SERVER_ERROR")

	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	c.Inject(lineartest.Fault{On: name, Hang: true, Do: func(*http.Request) { cancel(nil) }})
	if err := say(ctx, 12); !errors.Is(err, context.Canceled) || count() != 3 {
		t.Errorf("%v, %d done", err, count())
	}

	seen := false
	c.Inject(lineartest.Fault{On: name, Times: -1, Do: func(*http.Request) { seen = true }, Status: 500})
	if say(t.Context(), 13) == nil || say(t.Context(), 14) == nil || !seen {
		t.Error("it must go on failing")
	}
	c.ClearFaults()
	if err := say(t.Context(), 15); err != nil {
		t.Error(err)
	}
	c.Inject(lineartest.Fault{On: "token", Status: 503, Body: "{}"})
	if got := c.ask("grant_type", "client_credentials", "scope", scopes); got.status != 503 {
		t.Errorf("granted %+v", got)
	}
}
