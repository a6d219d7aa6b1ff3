package lineartest

import (
	"net/http"
	"strconv"
	"time"

	"ship/graphql/linear"
)

// allowance is what may be used in an hour.
type allowance struct {
	requests   int
	complexity float64
}

// usage is what was used of it, until it starts anew.
type usage struct {
	requests   int
	complexity float64
	reset      time.Time
}

// header tells the allowance, as Linear does with every answer. Cost is that of
// the request.
func (u usage) header(of allowance, cost float64) http.Header {
	h := http.Header{}
	reset := strconv.FormatInt(u.reset.UnixMilli(), 10)
	h.Set("X-RateLimit-Requests-Limit", strconv.Itoa(of.requests))
	h.Set("X-RateLimit-Requests-Remaining", strconv.Itoa(max(of.requests-u.requests, 0)))
	h.Set("X-RateLimit-Requests-Reset", reset)
	h.Set("X-Complexity", strconv.FormatFloat(cost, 'f', -1, 64))
	h.Set("X-RateLimit-Complexity-Limit", strconv.FormatFloat(of.complexity, 'f', -1, 64))
	h.Set("X-RateLimit-Complexity-Remaining", strconv.FormatFloat(max(of.complexity-u.complexity, 0), 'f', -1, 64))
	h.Set("X-RateLimit-Complexity-Reset", reset)
	return h
}

func (s *Server) allowance() allowance {
	return allowance{requests: s.opts.Requests, complexity: s.opts.Complexity}
}

// spend takes a request off the allowance and tells what is left. The caller
// holds mu.
func (s *Server) spend(header http.Header, cost float64) error {
	s.turnHour()
	over := s.used.requests+1 > s.opts.Requests || s.used.complexity+cost > s.opts.Complexity
	if !over {
		s.used.requests++
		s.used.complexity += cost
	}
	for key, values := range s.used.header(s.allowance(), cost) {
		header[key] = values
	}
	if over {
		return errLimited
	}
	return nil
}

func (s *Server) turnHour() {
	if now := s.now(); !now.Before(s.used.reset) {
		s.used = usage{reset: now.Add(time.Hour)}
	}
}

// Spend uses up a part of the hour's allowance, as other processes with the
// same app would.
func (s *Server) Spend(requests int, complexity float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnHour()
	s.used.requests += requests
	s.used.complexity += complexity
}

func (s *Server) readRateLimits(struct{}) (*linear.ReadRateLimitsResponse, error) {
	reset := float64(s.used.reset.UnixMilli())
	hour := float64(time.Hour.Milliseconds())
	return &linear.ReadRateLimitsResponse{RateLimitStatus: linear.RateLimits{Kind: "oauth", Limits: []linear.RateLimit{
		{
			Type: "requests", AllowedAmount: float64(s.opts.Requests), Period: hour, Reset: reset,
			RemainingAmount: float64(max(s.opts.Requests-s.used.requests, 0)),
		},
		{
			Type: "complexity", AllowedAmount: s.opts.Complexity, Period: hour, Reset: reset,
			RemainingAmount: max(s.opts.Complexity-s.used.complexity, 0),
		},
	}}}, nil
}
