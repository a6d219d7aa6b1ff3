package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// attempt is one try at a delivery, as GitHub keeps it for three days.
type attempt struct {
	id       int64
	delivery Delivery
	at       time.Time
	status   int
	again    bool
}

// Attempted records that a delivery was tried at some time, and how the other
// side answered. It is what the app gets to see in its list of deliveries.
func (s *Server) Attempted(d Delivery, at time.Time, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := slices.ContainsFunc(s.attempts, func(a attempt) bool { return a.delivery.GUID() == d.GUID() })
	s.attempts = append(s.attempts, attempt{id: s.newID(), delivery: d, at: at, status: status, again: again})
}

// Redeliveries returns the deliveries that the app asked to be repeated, in
// order, and forgets them. Delivering them is up to the test.
func (s *Server) Redeliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.redeliver
	s.redeliver = nil
	return asked
}

func (s *Server) listDeliveries(c *call) (int, any, error) {
	size := min(atLeastOne(c.URL.Query().Get("per_page"), 30), 100)
	from := atLeastOne(strings.TrimPrefix(c.URL.Query().Get("cursor"), "v1_"), 1) - 1
	newest := slices.Clone(s.attempts)
	slices.SortStableFunc(newest, func(a, b attempt) int { return b.at.Compare(a.at) })
	to := min(from+size, len(newest))
	if to < len(newest) {
		c.header.Set("Link", fmt.Sprintf(`<http://%s%s?per_page=%d&cursor=v1_%d>; rel="next"`, c.Host, c.URL.Path, size, to+1))
	}
	list := []object{}
	for _, a := range newest[min(from, to):to] {
		list = append(list, renderAttempt(a))
	}
	return http.StatusOK, list, nil
}

func renderAttempt(a attempt) object {
	var payload struct {
		Action       *string
		Installation struct{ ID int64 }
		Repository   struct{ ID int64 }
	}
	_ = json.Unmarshal(a.delivery.Body, &payload) // the tests may send anything
	return object{
		"id": a.id, "guid": a.delivery.GUID(), "delivered_at": stamp(a.at), "redelivery": a.again, "duration": 0.1,
		"status": http.StatusText(a.status), "status_code": a.status, "event": a.delivery.Header.Get("X-GitHub-Event"),
		"action": payload.Action, "installation_id": payload.Installation.ID, "repository_id": payload.Repository.ID,
	}
}

func (s *Server) redeliverOne(c *call) (int, any, error) {
	id, err := strconv.ParseInt(c.PathValue("delivery_id"), 10, 64)
	if err != nil {
		return 0, nil, errNotFound
	}
	for _, a := range s.attempts {
		if a.id == id {
			s.redeliver = append(s.redeliver, a.delivery)
			return http.StatusAccepted, object{}, nil
		}
	}
	return 0, nil, errNotFound
}
