// Package e2b keeps boxes in E2B's cloud, or in a cluster that speaks as it
// does: each is a small virtual machine with a guest in it.
//
// It speaks plain REST with E2B's API, which makes boxes, and a little of the
// Connect protocol with E2B's daemon in the box (envd), by which the guest is
// brought in and started. From then on all goes through the guest, over E2B's
// proxy to its port; see package guest.
//
// Three secrets guard a box. The API key makes boxes. The traffic token lets
// through E2B's proxy; it is kept in the Vault, sealed. The guest's own secret
// is derived from Config.Key and the box's id, as the loopback of a box is not
// private. None of the first two ever is in a box.
package e2b

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
)

// labelGateway tells the boxes of gateways that share a key from all others of
// the same E2B team, which are none of our business.
const labelGateway = "ship_gateway"

// userAgent must not look like a browser: that would be answered with a page.
const userAgent = "ship"

// Config is what a Provider needs.
type Config struct {
	Settings
	// PublicURL is where boxes reach the broker, as they reach this gateway.
	PublicURL string
	// Key is at least 16 random bytes that all gateways on the same boxes share.
	Key []byte
	// Vault is shared by them as well.
	Vault Vault
	// SandboxURL is where all boxes are reached, told apart by headers. Empty:
	// as E2B does it for Settings.Domain.
	SandboxURL string
	// Transport carries everything; nil: one of our own. It is not to follow a
	// proxy into boxes that it would not follow for the API.
	Transport *http.Transport
	Logger    *slog.Logger
}

// Provider is a sandbox.Provider. It starts no goroutine and knows nothing that
// another one on the same boxes does not.
type Provider struct {
	cfg     Config
	api     *api
	records *records
	program *program
	gateway string
	allow   []string
}

var _ sandbox.Provider = (*Provider)(nil)

// New checks the configuration and reads the guest's program. It calls nobody.
func New(cfg Config) (*Provider, error) {
	p, err := open(cfg)
	if err != nil {
		return nil, fmt.Errorf("e2b sandbox: %w", err)
	}
	return p, nil
}

func open(cfg Config) (*Provider, error) {
	switch {
	case cfg.APIKey.Empty():
		return nil, errors.New("sandbox.e2b.api_key is missing: take one from the dashboard of the E2B team")
	case len(cfg.Key) < 16 || cfg.Vault == nil:
		return nil, errors.New("a key of at least 16 bytes and a vault are required")
	}
	if err := cfg.Settings.Validate(); err != nil {
		return nil, err
	}
	host, err := brokerHost(cfg.PublicURL)
	if err != nil {
		return nil, err
	}
	if cfg.Transport == nil {
		cfg.Transport = newTransport()
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.User, cfg.Template = cmp.Or(cfg.User, "user"), cmp.Or(cfg.Template, "ship")
	cfg.Domain, cfg.MaxLife = cmp.Or(cfg.Domain, sharedDomain), cmp.Or(cfg.MaxLife, time.Hour)
	p := &Provider{
		cfg: cfg, gateway: hex.EncodeToString(derive(cfg.Key, "gateway")[:8]),
		api: &api{
			http: &http.Client{Transport: cfg.Transport, CheckRedirect: noRedirect},
			url:  strings.TrimRight(cmp.Or(cfg.APIURL, "https://api.e2b.app"), "/"), key: cfg.APIKey.Reveal(),
		},
		allow: append([]string{host}, cfg.AllowHosts...),
	}
	if p.records, err = newRecords(cfg.Vault, cfg.Key); err != nil {
		return nil, err
	}
	p.program, err = readProgram(cfg.Guest)
	return p, err
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 20 * time.Second, MaxIdleConnsPerHost: 16,
		// E2B cuts an idle connection after about 610 s.
		IdleConnTimeout: 90 * time.Second,
	}
}

// noRedirect: our keys go to where they were meant to go.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// brokerHost is the host that every box may reach. E2B knows a host by its name
// on the usual ports only.
func brokerHost(public string) (string, error) {
	if public == "" {
		return "", errors.New("public_url is missing: boxes at E2B reach ship by it; set it to where this ship can be reached from the internet")
	}
	u, err := url.Parse(public)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", errors.New("public_url is no web address that a box could reach")
	}
	_, notIP := netip.ParseAddr(u.Hostname())
	if port := u.Port(); notIP != nil && port != "" && port != "443" && port != "80" {
		return "", fmt.Errorf("public_url has port %s: E2B lets boxes reach a host by its name on ports 443 and 80 only", port)
	}
	return u.Hostname(), nil
}

func isNetwork(host string) bool {
	_, network := netip.ParsePrefix(host)
	_, address := netip.ParseAddr(host)
	return network == nil || address == nil
}

// Check reports whether E2B knows our key.
func (p *Provider) Check(ctx context.Context) error {
	if _, err := p.List(ctx, nil); err != nil {
		return fmt.Errorf("asking e2b for our boxes: %w", err)
	}
	return nil
}

// boxID is what an id may look like. It goes into paths and headers.
var boxID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

func checkID(id string) error {
	if !boxID.MatchString(id) {
		return fmt.Errorf("there is no box %q: %w", id, sandbox.ErrGone)
	}
	return nil
}

// Info returns what E2B says of a box, running or paused. A box of others is
// as good as none.
func (p *Provider) Info(ctx context.Context, id string) (sandbox.Info, error) {
	info, err := p.look(ctx, id)
	if err != nil {
		return sandbox.Info{}, fmt.Errorf("looking at box %s: %w", id, err)
	}
	return info, nil
}

func (p *Provider) look(ctx context.Context, id string) (sandbox.Info, error) {
	if err := checkID(id); err != nil {
		return sandbox.Info{}, err
	}
	m, err := p.api.get(ctx, id)
	if err != nil {
		return sandbox.Info{}, err
	}
	if m.Metadata[labelGateway] != p.gateway {
		return sandbox.Info{}, fmt.Errorf("it belongs to others: %w", sandbox.ErrGone)
	}
	r, _, err := p.records.load(ctx, m.Metadata[sandbox.LabelSession])
	return m.info(r), err
}

// List returns the boxes of all gateways with our key that carry these labels,
// running and paused, the oldest first.
func (p *Provider) List(ctx context.Context, labels map[string]string) ([]sandbox.Info, error) {
	machines, err := p.list(ctx, labels)
	if err != nil {
		return nil, err
	}
	var infos []sandbox.Info
	for _, m := range machines {
		r, _, err := p.records.load(ctx, m.Metadata[sandbox.LabelSession])
		if err != nil {
			return nil, fmt.Errorf("listing boxes: %w", err)
		}
		if info := m.info(r); sandbox.Carries(info.Labels, labels) {
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// list asks E2B, which knows of every label but the generation: a box keeps the
// one that it was made with, while its record has the newest.
func (p *Provider) list(ctx context.Context, labels map[string]string) ([]machine, error) {
	filter := map[string]string{labelGateway: p.gateway}
	for name, value := range labels {
		if name != sandbox.LabelGeneration {
			filter[name] = value
		}
	}
	machines, err := p.api.list(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("listing boxes: %w", err)
	}
	machines = slices.DeleteFunc(machines, func(m machine) bool { return !sandbox.Carries(m.Metadata, filter) || checkID(m.ID) != nil })
	slices.SortFunc(machines, func(a, b machine) int {
		return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.ID, b.ID))
	})
	return machines, nil
}

func (m machine) generation() int64 {
	n, _ := strconv.ParseInt(m.Metadata[sandbox.LabelGeneration], 10, 64)
	return n
}

func (m machine) info(r record) sandbox.Info {
	generation := m.generation()
	if r.Box == m.ID {
		generation = max(generation, r.Generation)
	}
	labels := map[string]string{}
	for name, value := range m.Metadata {
		if name != labelGateway {
			labels[name] = value
		}
	}
	labels[sandbox.LabelGeneration] = strconv.FormatInt(generation, 10)
	return sandbox.Info{
		ID: m.ID, Key: m.Metadata[sandbox.LabelSession], Generation: generation, State: m.State,
		Labels: labels, Created: m.Started, Expires: m.Ends,
	}
}

// Extend moves a box's expiry, and never shortens it: it looks when the box
// ends just now, and asks for what can only extend. A box that is paused does
// not end. Nothing beyond Settings.MaxLife is asked for.
func (p *Provider) Extend(ctx context.Context, id string, until time.Time) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("extending: %w", err)
	}
	m, err := p.api.get(ctx, id)
	if err == nil {
		err = p.extend(ctx, m, until)
	}
	if err != nil {
		return fmt.Errorf("extending box %s: %w", id, err)
	}
	return nil
}

func (p *Provider) extend(ctx context.Context, m machine, until time.Time) error {
	now := time.Now()
	left := min(until.Sub(now), p.cfg.MaxLife)
	if m.State == sandbox.Paused || !now.Add(left).After(m.Ends) {
		return nil
	}
	if left <= maxRefresh {
		return p.api.refresh(ctx, m.ID, max(left, minRefresh))
	}
	return p.api.timeout(ctx, m.ID, left)
}

// Destroy ends a box, running or paused. A box that is gone: nil.
func (p *Provider) Destroy(ctx context.Context, id string) error {
	if checkID(id) != nil {
		return nil
	}
	m, err := p.api.get(ctx, id)
	if errors.Is(err, sandbox.ErrGone) {
		return nil
	}
	if err == nil {
		err = p.api.destroy(ctx, id)
	}
	if err == nil {
		err = p.records.forget(ctx, m.Metadata[sandbox.LabelSession], id)
	}
	if err != nil {
		return fmt.Errorf("destroying box %s: %w", id, err)
	}
	return nil
}
