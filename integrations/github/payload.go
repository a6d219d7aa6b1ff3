package github

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"ship/bot"
	"ship/session"
)

// validLogin is what GitHub allows as an account's name. It ends up in URLs.
var validLogin = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98})(?:\[bot\])?$`)

// payload is one webhook's body, cut into its top-level parts in one pass.
// The parts are read only when something is made of them.
type payload struct {
	action                           string
	issue, comment, review, pull     part
	checkRun, label, requested       part
	repository, sender, installation part
}

// part is a piece of JSON that was checked already.
type part []byte

// get returns a value by its path; one that does not exist when there is none.
func (p part) get(path string) gjson.Result {
	value := []byte(p)
	for name := range strings.SplitSeq(path, ".") {
		if value = member(value, name); value == nil {
			return gjson.Result{}
		}
	}
	return gjson.ParseBytes(value)
}

// cut cuts a body into parts, and reports whether it is JSON.
func cut(body []byte) (payload, bool) {
	var p payload
	ok := members(body, func(name, value []byte) {
		switch string(name) {
		case "action":
			p.action = text(gjson.ParseBytes(value))
		case "issue":
			p.issue = value
		case "comment":
			p.comment = value
		case "review":
			p.review = value
		case "pull_request":
			p.pull = value
		case "check_run":
			p.checkRun = value
		case "label":
			p.label = value
		case "requested_action":
			p.requested = value
		case "repository":
			p.repository = value
		case "sender":
			p.sender = value
		case "installation":
			p.installation = value
		}
	})
	return p, ok
}

// text is a value's text, and empty for what is not a text.
func text(r gjson.Result) string {
	if r.Type != gjson.String {
		return ""
	}
	return r.Str
}

// moment is a value's time; zero when it is none, for no decision hangs on it.
func moment(r gjson.Result) time.Time {
	t, err := time.Parse(time.RFC3339, text(r))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// repo reads where it happened.
func (p payload) repo() (repo, error) {
	r := repo{
		installation: p.installation.get("id").Int(),
		id:           p.repository.get("id").Int(),
		owner:        text(p.repository.get("owner.login")),
		name:         text(p.repository.get("name")),
	}
	if r.id <= 0 || !validRepo(r.owner, r.name) {
		return repo{}, fmt.Errorf("repository: %w", bot.ErrMalformed)
	}
	return r, nil
}

// thread reads on which issue or pull request it happened.
func (p payload) thread(number gjson.Result, pull bool) (thread, error) {
	r, err := p.repo()
	if err != nil {
		return thread{}, err
	}
	n := number.Int()
	if n <= 0 || n > 1<<31-1 {
		return thread{}, fmt.Errorf("number: %w", bot.ErrMalformed)
	}
	return thread{repo: r, number: int(n), pull: pull}, nil
}

// person reads who did it. GitHub vouches for the login.
func (p payload) person(noreply string) (session.Person, error) {
	login, id := text(p.sender.get("login")), p.sender.get("id").Int()
	if !validLogin.MatchString(login) {
		return session.Person{}, fmt.Errorf("sender: %w", bot.ErrMalformed)
	}
	who := session.Person{Login: login}
	if id > 0 {
		who.Email = fmt.Sprintf("%d+%s@%s", id, login, noreply)
	}
	return who, nil
}

// unwanted names why an act is not looked at, whatever it says.
func (p payload) unwanted(appID int64, said part) string {
	switch {
	case p.installation.get("id").Int() <= 0:
		return outcomeNoInstallation
	case said.get("performed_via_github_app.id").Int() == appID, ours(text(said.get("body"))):
		return outcomeOwn
	case text(p.sender.get("type")) == "Bot":
		return outcomeBot
	}
	return ""
}
