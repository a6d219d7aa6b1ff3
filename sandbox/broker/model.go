package broker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const modelPrefix = "/broker/model/"

// Provider is an upstream that speaks the OpenAI API.
type Provider struct {
	// BaseURL is what chat/completions is appended to, usually ending in /v1. A
	// query in it is kept.
	BaseURL string
	// APIKey is sent as a bearer token; empty: none is.
	APIKey string
	// Models that may be granted, with their prices. A price of zero is free.
	Models map[string]Price
}

// provider is a Provider that was checked.
type provider struct {
	Provider
	name string
	base *url.URL
}

func newProviders(config map[string]Provider) (map[string]*provider, error) {
	all := map[string]*provider{}
	for name, p := range config {
		base, err := parseBase(p.BaseURL)
		switch {
		case name == "" || strings.ContainsAny(name, "/%?#"):
			return nil, fmt.Errorf("model provider %q: name must fit in a path", name)
		case err != nil:
			return nil, fmt.Errorf("model provider %s: %w", name, err)
		case strings.ContainsFunc(p.APIKey, notPrintable):
			return nil, fmt.Errorf("model provider %s: API key has characters that no header may have", name)
		}
		for model, price := range p.Models {
			if !price.valid() {
				return nil, fmt.Errorf("model %s/%s: prices must be zero or more", name, model)
			}
		}
		all[name] = &provider{Provider: p, name: name, base: base}
	}
	return all, nil
}

func notPrintable(r rune) bool { return r <= ' ' || r > '~' }

// serveModel answers /broker/model/PROVIDER/….
func (b *Broker) serveModel(v *visit) error {
	name, rest, _ := strings.Cut(strings.TrimPrefix(v.r.URL.Path, modelPrefix), "/")
	p := b.providers[name]
	if p == nil {
		return refuse(http.StatusNotFound, codeNotFound, "there is no model provider of that name")
	}
	switch {
	case rest == "models" && v.r.Method == http.MethodGet:
		return p.list(v)
	case rest == "chat/completions" && v.r.Method == http.MethodPost:
		return b.complete(v, p)
	case rest == "models", rest == "chat/completions":
		return refuse(http.StatusMethodNotAllowed, codeMethod, "%s is not answered here", v.r.Method)
	}
	return refuse(http.StatusNotFound, codeNotFound, "only chat/completions and models are served")
}

// granted are the provider's models that a grant names, sorted.
func (p *provider) granted(g Grant) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.Models)), func(m string) bool {
		return !slices.Contains(g.Models, p.name+"/"+m)
	})
}

// list answers from the configuration; the upstream's list may be long, and
// tells of what cannot be had.
func (p *provider) list(v *visit) error {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	data := []model{}
	for _, m := range p.granted(v.grant) {
		data = append(data, model{ID: m, Object: "model", OwnedBy: p.name})
	}
	body, err := json.Marshal(map[string]any{"object": "list", "data": data})
	if err != nil {
		return fmt.Errorf("list models: %w", err)
	}
	return v.answer("application/json", string(body))
}

// complete makes one model call.
func (b *Broker) complete(v *visit, p *provider) error {
	// Before the body is read: what waits should not fill the memory.
	if err := take(v.r.Context(), v.tab.slots); err != nil {
		return err
	}
	defer func() { <-v.tab.slots }()
	v.tick()
	raw, err := readChat(v.body(), b.maxBody)
	v.rest()
	if err != nil {
		return err
	}
	c, err := parseChat(raw)
	if err != nil {
		return err
	}
	if !slices.Contains(p.granted(v.grant), c.model) {
		return notGranted(p, v.grant)
	}
	hold := p.Models[c.model].cost(tokens{input: perToken(len(c.body)), output: c.output})
	bill, err := b.till.admit(v, hold)
	if err != nil {
		return err
	}
	call := b.call(v, p, c)
	b.observer.Called(call.Call)
	if err := b.till.settle(v, bill, call.booked()); err != nil {
		// The client has its answer and can do nothing about this. The next call
		// asks the ledger first.
		b.log.WarnContext(v.r.Context(), "a model call was not booked", "session", v.grant.Session, "turn", v.grant.Turn,
			"usd", call.Usage.USD, "input", call.Usage.Input, "output", call.Usage.Output, "error", err)
	}
	return call.err
}

func notGranted(p *provider, g Grant) *refusal {
	choices := cmp.Or(strings.Join(p.granted(g), ", "), "none")
	return refuse(http.StatusForbidden, codeModel, "this turn may not call that model; of %s it may call: %s", p.name, choices)
}

// finished is a call with what the client could not be told any more.
type finished struct {
	Call
	err error
}

// booked is what settle adds: the call itself was counted before.
func (f finished) booked() Usage {
	return Usage{Input: f.Usage.Input, Output: f.Usage.Output, USD: f.Usage.USD}
}

// call asks the upstream, passes its answer on and says what that used.
func (b *Broker) call(v *visit, p *provider, c chat) finished {
	began := time.Now()
	f := finished{Call: Call{Provider: p.name, Model: c.model}}
	var used tokens
	resp, err := b.transport.RoundTrip(p.request(v, c))
	if err != nil {
		f.err = unreachable(p.name, err)
		if !neverSent(err) {
			// It may well be working on it, and bill that.
			used, f.Estimated = tokens{input: perToken(len(c.body))}, true
		}
	} else {
		defer resp.Body.Close()
		f.Status = resp.StatusCode
		used, f.Estimated, f.err = p.pass(v, resp, len(c.body))
	}
	f.Usage = Usage{Calls: 1, Input: used.input, Output: used.output, USD: p.Models[c.model].cost(used)}
	f.Took = time.Since(began)
	return f
}

func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// request is made from scratch: no header of the client's goes out.
func (p *provider) request(v *visit, c chat) *http.Request {
	u := p.base.JoinPath("chat/completions")
	req := (&http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(c.body)), ContentLength: int64(len(c.body)),
	}).WithContext(v.r.Context())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("User-Agent", "ship")
	if p.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+p.APIKey)
	}
	return req
}

// modelHeaders of an upstream are for the client.
func modelHeaders() []string {
	return []string{"Content-Type", "Retry-After", "Retry-After-Ms", "X-Request-Id", "X-Ratelimit-"}
}

// pass hands the upstream's answer on, whatever its status, and meters it.
func (p *provider) pass(v *visit, resp *http.Response, request int) (used tokens, estimated bool, err error) {
	switch {
	case isRedirect(resp.StatusCode):
		return tokens{}, false, refuse(http.StatusBadGateway, codeRefused,
			"the provider answered with a redirect, which is not followed; its base_url may be wrong")
	case resp.Header.Get("Content-Encoding") != "":
		return tokens{input: perToken(request)}, true, refuse(http.StatusBadGateway, codeRefused,
			"the provider compressed its answer unasked")
	}
	passHeaders(v.w.Header(), resp.Header, modelHeaders(), p.APIKey)
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	v.w.WriteHeader(resp.StatusCode)
	m := &meter{stream: strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")}
	clean := &scrub{write: v.w.Write, secret: []byte(p.APIKey)}
	err = v.relay(clean, io.TeeReader(resp.Body, m))
	if err == nil {
		err = clean.Close()
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return tokens{}, false, err // an error costs nothing
	}
	used, estimated = m.result(request)
	return used, estimated, err
}
