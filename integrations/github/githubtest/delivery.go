package githubtest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// Delivery is one webhook, as GitHub would send it.
type Delivery struct {
	Header http.Header
	Body   []byte
}

// Sign signs the delivery with the webhook's secret, in place.
func (d Delivery) Sign(secret string) Delivery {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(d.Body)
	d.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return d
}

// GUID is the delivery's id.
func (d Delivery) GUID() string { return d.Header.Get("X-GitHub-Delivery") }

// Deliver posts a delivery and returns the status of the answer.
func Deliver(ctx context.Context, url string, d Delivery) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return 0, fmt.Errorf("deliver: %w", err)
	}
	req.Header = d.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("deliver: %w", err)
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// event wraps what happened into a delivery. The caller holds mu.
func (s *Server) event(name, action string, r *repository, by *user, parts object) Delivery {
	payload := object{
		"action": action, "repository": s.renderRepo(r), "sender": s.renderUser(by),
		"installation": object{"id": s.installed(r.owner.login).id, "node_id": nodeID("IN", s.installed(r.owner.login).id)},
	}
	for key, value := range parts {
		payload[key] = value
	}
	body, err := json.Marshal(payload)
	if err != nil {
		panic("githubtest: " + err.Error()) // the parts are maps of plain values
	}
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "GitHub-Hookshot/githubtest")
	header.Set("X-GitHub-Event", name)
	header.Set("X-GitHub-Delivery", guid())
	header.Set("X-GitHub-Hook-ID", "1")
	header.Set("X-GitHub-Hook-Installation-Target-ID", strconv.FormatInt(s.opts.AppID, 10))
	header.Set("X-GitHub-Hook-Installation-Target-Type", "integration")
	return Delivery{Header: header, Body: body}
}

func guid() string {
	h := random(32)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// IssueComment has somebody comment on an issue or pull request.
func (s *Server) IssueComment(repo string, number int, login, body string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, i := s.mustIssue(repo, number)
	by := s.person(login)
	c := s.addComment(i, by, body)
	return s.event("issue_comment", "created", r, by, object{"issue": s.renderIssue(r, i), "comment": s.renderComment(r, i, c)})
}

// Label has somebody put a label on an issue.
func (s *Server) Label(repo string, number int, login, label string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, i := s.mustIssue(repo, number)
	i.labels, i.updated = append(i.labels, label), clock()
	return s.event("issues", "labeled", r, s.person(login), object{"issue": s.renderIssue(r, i), "label": s.renderLabel(r, label)})
}

// ReviewComment has somebody comment on a line of a pull request.
func (s *Server) ReviewComment(repo string, number int, n ReviewComment) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, i := s.mustIssue(repo, number)
	by := s.person(n.User)
	c := s.addInline(i, by, n)
	return s.event("pull_request_review_comment", "created", r, by, object{
		"pull_request": s.renderPull(r, i), "comment": s.renderInline(r, i, c),
	})
}

// Review has somebody review a pull request. State is commented, approved or
// changes_requested.
func (s *Server) Review(repo string, number int, login, state, body string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, i := s.mustIssue(repo, number)
	by := s.person(login)
	v := &review{id: s.newID(), author: by, body: body, state: state, commit: i.pull.headSHA, created: clock()}
	i.reviews = append(i.reviews, v)
	return s.event("pull_request_review", "submitted", r, by, object{
		"pull_request": s.renderPull(r, i), "review": s.renderReview(r, i, v),
	})
}

// CheckAction has somebody press a button of a check run.
func (s *Server) CheckAction(repo string, id int64, login, identifier string) Delivery {
	return s.checkEvent(repo, id, login, "requested_action", object{"requested_action": object{"identifier": identifier}})
}

// CheckRerequest has somebody press "Re-run" of a check run.
func (s *Server) CheckRerequest(repo string, id int64, login string) Delivery {
	return s.checkEvent(repo, id, login, "rerequested", object{})
}

func (s *Server) checkEvent(repo string, id int64, login, action string, parts object) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.must(repo)
	run := r.findCheck(id)
	if run == nil {
		panic(fmt.Sprintf("githubtest: there is no check run %d in %s", id, repo))
	}
	parts["check_run"] = s.renderCheck(r, run)
	return s.event("check_run", action, r, s.person(login), parts)
}

// PullClosed has somebody close or merge a pull request.
func (s *Server) PullClosed(repo string, number int, login string, merged bool) Delivery {
	s.ClosePull(repo, number, merged)
	s.mu.Lock()
	defer s.mu.Unlock()
	r, i := s.mustIssue(repo, number)
	return s.event("pull_request", "closed", r, s.person(login), object{"number": i.number, "pull_request": s.renderPull(r, i)})
}

// Ping is what GitHub sends when the webhook is set up.
func (s *Server) Ping(repo string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.must(repo)
	return s.event("ping", "", r, r.owner, object{"zen": "Keep it logically awesome.", "hook_id": 1})
}
