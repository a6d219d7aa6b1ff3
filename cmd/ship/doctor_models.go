package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// providerTime is how long a provider may take to list its models.
	providerTime = 5 * time.Second
	// maxModelList in bytes; the longest that is known has a few hundred KiB.
	maxModelList = 8 << 20
)

// directClient follows no redirect: a key or a signature goes where the
// settings say.
func directClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// checkModels asks every provider for its list of models, which costs nothing.
func checkModels(ctx context.Context, p *patient) (found []finding) {
	for _, name := range slices.Sorted(maps.Keys(p.settings.Models)) {
		f := checkProvider(ctx, name, p.settings.Models[name])
		f.Check = "models." + name
		found = append(found, f)
	}
	if len(found) == 0 {
		return []finding{bad("fill in models, with their prices", "no model is set up")}
	}
	return found
}

func checkProvider(ctx context.Context, name string, m ModelProvider) finding {
	key, base := "models."+name+".api_key", "models."+name+".base_url"
	status, listed, err := listModels(ctx, m)
	switch {
	case err != nil:
		return bad("check "+base+" and the network", "%s cannot be reached: %v", m.BaseURL, err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return bad("set "+key+" to one that is good there", "%s refuses the key (%d)", m.BaseURL, status)
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return doubt("if models cannot be used, check "+base, "%s has no list of models (%d), so the key was not checked", m.BaseURL, status)
	case status == http.StatusTooManyRequests:
		return doubt("check the account's limits", "%s does not refuse the key, but asks to slow down (429)", m.BaseURL)
	case status != http.StatusOK:
		return bad("check "+base+", or wait if it is the provider's trouble", "%s answered %d", m.BaseURL, status)
	}
	if missing := unlisted(m, listed); len(missing) > 0 {
		return doubt("check the names in models."+name+".models", "%s does not list %s", m.BaseURL, strings.Join(missing, ", "))
	}
	return good("%s answers and does not refuse the key", m.BaseURL)
}

// listModels asks a provider for the names of its models; none when its answer
// is not understood.
func listModels(ctx context.Context, m ModelProvider) (status int, names []string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(m.BaseURL, "/")+"/models", nil)
	if err != nil {
		return 0, nil, err
	}
	if !m.APIKey.Empty() {
		req.Header.Set("Authorization", "Bearer "+m.APIKey.Reveal())
	}
	resp, err := directClient(providerTime).Do(req)
	if err != nil {
		return 0, nil, bare(err)
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxModelList)).Decode(&list) // then there are none
	for _, one := range list.Data {
		names = append(names, one.ID)
	}
	return resp.StatusCode, names, nil
}

// bare is an error of a request without the request.
func bare(err error) error {
	var way *url.Error
	if errors.As(err, &way) {
		return way.Err
	}
	return err
}

// unlisted are the models of the settings that a provider does not name. One
// that names none is believed to have them all.
func unlisted(m ModelProvider, listed []string) []string {
	if len(listed) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.Models)), func(name string) bool { return slices.Contains(listed, name) })
}

func checkDefaultModel(_ context.Context, p *patient) finding {
	name := p.settings.defaultModel()
	provider, model, _ := strings.Cut(name, "/")
	price, known := p.settings.Models[provider].Models[model]
	switch {
	case !known:
		return bad("fill in models, and agent.model if there are several", "there is no model to use")
	case price.Input == 0 && price.Output == 0:
		return doubt("set its prices if it is not free", "%s costs nothing by the settings, so no budget ends a turn", name)
	}
	return good("%s, %g USD in and %g USD out per million tokens", name, price.Input, price.Output)
}
