package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"
	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// permissionKept is how long a person's right is believed without asking
	// again: somebody who lost it can command for that much longer.
	permissionKept = time.Minute
	// maxPermissions kept at a time.
	maxPermissions = 4096
)

// people asks GitHub what people may do. Whoever needs to know shares what it
// learned.
type people struct {
	app *app
	// permission that it takes to command ship: write or admin.
	permission string
	known      *lru.Cache[string, standing]
}

func newPeople(c Config, a *app) *people {
	known, err := lru.New[string, standing](maxPermissions)
	if err != nil {
		panic(err) // unreachable: the size is positive
	}
	return &people{app: a, permission: c.Permission, known: known}
}

// standing is what a person may do in a repository, and what they are called.
type standing struct {
	may   bool
	id    int64
	login string
	name  string
	until time.Time
}

// standing asks GitHub what a person may do, once a minute at most.
func (p *people) standing(ctx context.Context, r repo, login string) (standing, error) {
	if !validLogin.MatchString(login) {
		return standing{}, nil
	}
	key := fmt.Sprintf("%d/%d/%s", r.installation, r.id, strings.ToLower(login))
	if known, ok := p.known.Get(key); ok && time.Now().Before(known.until) {
		return known, nil
	}
	in, err := p.app.installation(r.installation)
	if err != nil {
		return standing{}, err
	}
	var level github.RepositoryPermissionLevel
	_, err = in.call(ctx, http.MethodGet, r.path("collaborators/%s/permission", url.PathEscape(login)), nil, &level)
	if gone(err) { // nobody of that name, so nobody who may
		return standing{}, nil
	}
	if err != nil {
		return standing{}, err
	}
	who := level.GetUser()
	got := standing{id: who.GetID(), login: who.GetLogin(), name: who.GetName(), until: time.Now().Add(permissionKept)}
	got.may = level.GetPermission() == "admin" || level.GetPermission() == p.permission
	p.known.Add(key, got)
	return got, nil
}
