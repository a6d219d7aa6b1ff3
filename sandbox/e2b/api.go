package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
)

// api speaks with the control plane.
type api struct {
	http     *http.Client
	url, key string
}

const (
	// apiPatience is how long one call may take. Creating a box can wait for a
	// place on E2B's side.
	apiPatience = 90 * time.Second
	// maxWait is how long a call waits at most when it is told that there were
	// too many, and maxAsks how often it asks then.
	maxWait = 10 * time.Second
	maxAsks = 3
	// maxPages bounds a list that does not end, at pageSize boxes each.
	maxPages = 100
	pageSize = 100
	maxBody  = 8 << 20
)

var errPages = errors.New("the list of boxes does not end")

// machine is a box as the API describes it.
type machine struct {
	ID       string            `json:"sandboxID"`
	State    sandbox.State     `json:"state"`
	Started  time.Time         `json:"startedAt"`
	Ends     time.Time         `json:"endAt"`
	Metadata map[string]string `json:"metadata"`
	access
}

// access is what a box is reached with.
type access struct {
	// Envd is the token of E2B's daemon in the box, Traffic that of every other
	// port. Only create and connect tell the latter.
	Envd    string `json:"envdAccessToken"`
	Traffic string `json:"trafficAccessToken"`
	// Domain is empty where it is the usual one.
	Domain string `json:"domain"`
}

// order is a box as it is asked for. That the names are of two kinds is E2B's.
type order struct {
	Template string            `json:"templateID"`
	Timeout  int64             `json:"timeout"`
	Secure   bool              `json:"secure"`
	Internet bool              `json:"allow_internet_access"`
	Network  network           `json:"network"`
	Metadata map[string]string `json:"metadata"`
}

type network struct {
	PublicTraffic bool     `json:"allowPublicTraffic"`
	AllowOut      []string `json:"allowOut"`
	DenyOut       []string `json:"denyOut"`
}

// seconds rounds up: less than was asked for would be a box that ends early.
func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// create makes a box. There is no key that would make a repeat harmless: what
// became of a call without an answer has to be found out by list.
func (a *api) create(ctx context.Context, o order) (machine, error) {
	var m machine
	err := a.call(ctx, http.MethodPost, "/sandboxes", o, &m)
	var f *Fault
	if errors.As(err, &f) && errors.Is(err, sandbox.ErrGone) {
		f.kind = nil // There is no such template; no box is gone.
	}
	return m, err
}

// connect wakes a box that is paused, which then has the timeout that is sent.
// That of a running one is only ever extended.
func (a *api) connect(ctx context.Context, id string, timeout time.Duration) (machine, error) {
	var m machine
	err := a.call(ctx, http.MethodPost, "/sandboxes/"+id+"/connect", map[string]int64{"timeout": seconds(timeout)}, &m)
	return m, err
}

func (a *api) get(ctx context.Context, id string) (machine, error) {
	var m machine
	header, err := a.send(ctx, http.MethodGet, "/sandboxes/"+id, nil, &m)
	m.byOurClock(header)
	return m, err
}

// byOurClock turns E2B's times into ours, as far as the two clocks differ by
// more than an answer takes and its header can tell.
func (m *machine) byOurClock(header http.Header) {
	const noise = 5 * time.Second
	theirs, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return
	}
	if ahead := time.Until(theirs); ahead.Abs() > noise {
		m.Started, m.Ends = m.Started.Add(-ahead), m.Ends.Add(-ahead)
	}
}

// refresh extends, and never shortens; it takes from minRefresh to maxRefresh.
func (a *api) refresh(ctx context.Context, id string, duration time.Duration) error {
	return a.call(ctx, http.MethodPost, "/sandboxes/"+id+"/refreshes", map[string]int64{"duration": seconds(duration)}, nil)
}

// What E2B takes as the duration of a refresh.
const (
	minRefresh = 15 * time.Second
	maxRefresh = time.Hour
)

// timeout sets the time that is left. It may shorten.
func (a *api) timeout(ctx context.Context, id string, left time.Duration) error {
	return a.call(ctx, http.MethodPost, "/sandboxes/"+id+"/timeout", map[string]int64{"timeout": seconds(left)}, nil)
}

func (a *api) pause(ctx context.Context, id string, memory bool) error {
	return a.call(ctx, http.MethodPost, "/sandboxes/"+id+"/pause", map[string]bool{"memory": memory}, nil)
}

// destroy of a box that is gone: nil.
func (a *api) destroy(ctx context.Context, id string) error {
	err := a.call(ctx, http.MethodDelete, "/sandboxes/"+id, nil, nil)
	if errors.Is(err, sandbox.ErrGone) {
		return nil
	}
	return err
}

// list returns all boxes, running or paused, that carry these labels: all
// pages, or an error.
func (a *api) list(ctx context.Context, labels map[string]string) ([]machine, error) {
	query := url.Values{"state": {"running,paused"}, "limit": {strconv.Itoa(pageSize)}}
	if len(labels) > 0 {
		query.Set("metadata", encodeLabels(labels))
	}
	var all []machine
	for range maxPages {
		var page []machine
		header, err := a.send(ctx, http.MethodGet, "/v2/sandboxes?"+query.Encode(), nil, &page)
		if err != nil {
			return nil, err
		}
		for i := range page {
			page[i].byOurClock(header)
		}
		all = append(all, page...)
		next := header.Get("X-Next-Token")
		if next == "" {
			return all, nil
		}
		query.Set("nextToken", next)
	}
	return nil, fmt.Errorf("after %d pages: %w", maxPages, errPages)
}

// encodeLabels writes a filter: names and values are encoded each by itself,
// and the whole of it once more as the value of a query.
func encodeLabels(labels map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, url.QueryEscape(name)+"="+url.QueryEscape(labels[name]))
	}
	return strings.Join(pairs, "&")
}

func (a *api) call(ctx context.Context, method, target string, in, out any) error {
	_, err := a.send(ctx, method, target, in, out)
	return err
}

// send asks, and asks again after a while when there were too many requests:
// such a one was not looked at, so that even a create may be repeated.
func (a *api) send(ctx context.Context, method, target string, in, out any) (http.Header, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, fmt.Errorf("encoding a request: %w", err)
		}
	}
	for asked := 1; ; asked++ {
		header, err := a.once(ctx, method, target, body, out)
		var f *Fault
		limited := errors.As(err, &f) && f.Status == http.StatusTooManyRequests && errors.Is(err, sandbox.ErrTransient)
		if !limited || asked == maxAsks || f.Wait > maxWait {
			return header, err
		}
		if err := sandbox.Sleep(ctx, max(f.Wait, 100*time.Millisecond)); err != nil {
			return nil, err
		}
	}
}

func (a *api) once(ctx context.Context, method, target string, body []byte, out any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, a.url+target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking e2b: %w", err)
	}
	request.Header.Set("X-API-KEY", a.key)
	request.Header.Set("User-Agent", userAgent)
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := a.http.Do(request)
	if err != nil {
		return nil, unreached(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, unreached(ctx, err)
	}
	if response.StatusCode >= 300 {
		return nil, a.hide(apiFault(response.StatusCode, response.Header, text))
	}
	if out == nil {
		return response.Header, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("decoding e2b's answer: %w: %w", sandbox.ErrTransient, err)
	}
	return response.Header, nil
}

// hide takes our key out of what E2B said.
func (a *api) hide(f *Fault) *Fault {
	if a.key != "" {
		f.Message = strings.ReplaceAll(f.Message, a.key, "[redacted]")
	}
	return f
}
