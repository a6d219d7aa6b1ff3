package githubtest

import (
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Action is a button of a check run.
type Action struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Identifier  string `json:"identifier"`
}

// checkRequest is the body of both POST and PATCH.
type checkRequest struct {
	Name       string  `json:"name"`
	HeadSHA    string  `json:"head_sha"`
	ExternalID *string `json:"external_id"`
	DetailsURL *string `json:"details_url"`
	Status     string  `json:"status"`
	Conclusion string  `json:"conclusion"`
	StartedAt  *time.Time
	Output     *struct{ Title, Summary string }
	Actions    []Action
}

func (c *call) checkRequest() (checkRequest, error) {
	var in checkRequest
	if err := c.decode(&in); err != nil {
		return in, err
	}
	if in.Output != nil && utf8.RuneCountInString(in.Output.Summary) > 65535 {
		return in, invalid("summary", "Only 65535 characters are allowed")
	}
	if len(in.Actions) > 3 {
		return in, invalid("actions", "Only 3 actions are allowed")
	}
	for _, a := range in.Actions {
		if len(a.Label) > 20 || len(a.Description) > 40 || len(a.Identifier) > 20 {
			return in, invalid("actions", "An action is too long")
		}
	}
	return in, nil
}

func (s *Server) createCheck(c *call) (int, any, error) {
	in, err := c.checkRequest()
	if err != nil {
		return 0, nil, err
	}
	if !s.hasCommit(c.repo, in.HeadSHA) {
		return 0, nil, invalid("head_sha", "No commit found for SHA: "+in.HeadSHA)
	}
	made := &check{id: s.newID(), sha: in.HeadSHA, name: in.Name, status: "queued", started: clock()}
	made.apply(in)
	c.repo.checks = append(c.repo.checks, made)
	return http.StatusCreated, s.renderCheck(c.repo, made), nil
}

func (s *Server) updateCheck(c *call) (int, any, error) {
	in, err := c.checkRequest()
	if err != nil {
		return 0, nil, err
	}
	found := c.repo.findCheck(c.number("id"))
	if found == nil {
		return 0, nil, errNotFound
	}
	found.apply(in)
	return http.StatusOK, s.renderCheck(c.repo, found), nil
}

// apply changes what the request mentions. A conclusion implies completed, and
// another status takes the conclusion away.
func (c *check) apply(in checkRequest) {
	if in.Status != "" {
		c.status, c.conclusion, c.completed = in.Status, "", time.Time{}
	}
	if in.Conclusion != "" {
		c.status, c.conclusion, c.completed = "completed", in.Conclusion, clock()
	}
	if in.ExternalID != nil {
		c.externalID = *in.ExternalID
	}
	if in.DetailsURL != nil {
		c.detailsURL = *in.DetailsURL
	}
	if in.StartedAt != nil {
		c.started = *in.StartedAt
	}
	if in.Output != nil {
		c.title, c.summary = in.Output.Title, in.Output.Summary
	}
	if in.Actions != nil {
		c.actions = slices.Clone(in.Actions)
	}
}

func (s *Server) listChecks(c *call) (int, any, error) {
	query := c.URL.Query()
	var found []*check
	for _, run := range c.repo.checks {
		named := query.Get("check_name") == "" || query.Get("check_name") == run.name
		app := query.Get("app_id") == "" || query.Get("app_id") == strconv.FormatInt(s.opts.AppID, 10)
		if run.sha == c.PathValue("ref") && named && app {
			found = append(found, run)
		}
	}
	// Unless all are asked for, GitHub gives the latest of each name.
	if query.Get("filter") != "all" && len(found) > 1 {
		found = found[len(found)-1:]
	}
	list := []object{}
	for _, run := range page(c, found) {
		list = append(list, s.renderCheck(c.repo, run))
	}
	return http.StatusOK, object{"total_count": len(found), "check_runs": list}, nil
}
