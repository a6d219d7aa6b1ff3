package opencode

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"ship/sandbox"
	"ship/sandbox/agent"
)

// providerPrefix keeps our providers apart from those that OpenCode knows by
// itself: under the name "openai" it would add its own models and ways.
const providerPrefix = "ship-"

// settings is OpenCode's configuration file.
type settings struct {
	Schema     string                      `json:"$schema"`
	Enabled    []string                    `json:"enabled_providers"`
	Model      string                      `json:"model"`
	SmallModel string                      `json:"small_model"`
	Provider   map[string]providerSettings `json:"provider"`
	// Instructions must be absolute: relative paths are read from nowhere.
	Instructions []string       `json:"instructions"`
	Permission   map[string]any `json:"permission"`
	Share        string         `json:"share"`
	Autoupdate   bool           `json:"autoupdate"`
	Snapshot     bool           `json:"snapshot"`
	LSP          bool           `json:"lsp"`
	Formatter    bool           `json:"formatter"`
}

type providerSettings struct {
	Name    string                   `json:"name"`
	NPM     string                   `json:"npm"`
	Options providerOptions          `json:"options"`
	Models  map[string]modelSettings `json:"models"`
}

// providerOptions: timeout limits a whole answer, however healthy its stream,
// so it is off; the other two limit silence, in milliseconds.
type providerOptions struct {
	BaseURL       string `json:"baseURL"`
	APIKey        string `json:"apiKey"`
	Timeout       bool   `json:"timeout"`
	HeaderTimeout int64  `json:"headerTimeout"`
	ChunkTimeout  int64  `json:"chunkTimeout"`
}

type modelSettings struct {
	Name  string         `json:"name"`
	Limit *limitSettings `json:"limit,omitempty"`
	Cost  costSettings   `json:"cost"`
}

type limitSettings struct {
	Context int `json:"context"`
	Output  int `json:"output"`
}

type costSettings struct {
	Input     float64 `json:"input"`
	Output    float64 `json:"output"`
	CacheRead float64 `json:"cache_read"`
}

// render makes the configuration file. It holds no secret: the word that
// stands for the key is replaced by the turn's token on the way out of the box.
func render(s agent.Setup) ([]byte, error) {
	first := s.Providers[0]
	model := providerPrefix + first.Name + "/" + first.Models[0].Name
	out := settings{
		Schema: "https://opencode.ai/config.json", Model: model, SmallModel: model,
		Provider: map[string]providerSettings{}, Instructions: s.Instructions,
		Permission: permissions(), Share: "disabled",
	}
	for _, p := range s.Providers {
		id := providerPrefix + p.Name
		out.Enabled = append(out.Enabled, id)
		out.Provider[id] = provider(p, s)
	}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render opencode settings: %w", err)
	}
	return b, nil
}

// permissions: nobody is there to answer. A question would wait for ever, and
// so would the default rule on .env files; the box is the boundary, not these.
func permissions() map[string]any {
	return map[string]any{
		"question": "deny", "read": map[string]string{"*": "allow"}, "edit": "allow",
		"bash": "allow", "webfetch": "allow", "external_directory": "allow", "doom_loop": "allow",
	}
}

func provider(p agent.Provider, s agent.Setup) providerSettings {
	silence := s.Silence.Milliseconds()
	out := providerSettings{
		Name: p.Name, NPM: "@ai-sdk/openai-compatible", Models: map[string]modelSettings{},
		Options: providerOptions{
			BaseURL: strings.TrimRight(s.Broker, "/") + "/broker/model/" + p.Name,
			APIKey:  "none", HeaderTimeout: silence, ChunkTimeout: silence,
		},
	}
	for _, m := range p.Models {
		entry := modelSettings{Name: m.Name, Cost: costSettings{
			Input: m.Price.Input, Output: m.Price.Output, CacheRead: m.Price.Cached,
		}}
		if m.Context > 0 && m.Output > 0 {
			entry.Limit = &limitSettings{Context: m.Context, Output: m.Output}
		}
		out.Models[m.Name] = entry
	}
	return out
}

// environment of the server. Its tools inherit it, so whatever would wait for
// a person at a terminal is turned off here too.
func environment(rec record, more []string) []string {
	home := sandbox.HomeDir
	return append([]string{
		"HOME=" + home,
		"XDG_DATA_HOME=" + home + "/.local/share",
		"XDG_STATE_HOME=" + home + "/.local/state",
		"XDG_CONFIG_HOME=" + home + "/.config",
		"XDG_CACHE_HOME=" + home + "/.cache",
		"OPENCODE_CONFIG=" + configPath,
		"OPENCODE_SERVER_PASSWORD=" + rec.Password,
		// The repository's own configuration is not read, and no plugin of
		// anyone is run. This alone does not hold: see Shelve.
		"OPENCODE_DISABLE_PROJECT_CONFIG=1",
		"OPENCODE_PURE=1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		"OPENCODE_DISABLE_CLAUDE_CODE=1",
		"OPENCODE_DISABLE_EXTERNAL_SKILLS=1",
		// There is no network to fetch these from, or to send them to.
		"OPENCODE_DISABLE_AUTOUPDATE=1",
		"OPENCODE_DISABLE_MODELS_FETCH=1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"OPENCODE_DISABLE_SHARE=1",
		"OPENCODE_DISABLE_EMBEDDED_WEB_UI=1",
		marker,
		"GIT_TERMINAL_PROMPT=0",
		"GIT_EDITOR=true",
		"GIT_PAGER=cat",
		"PAGER=cat",
	}, more...)
}

// digest tells whether a running server was started with these settings.
func digest(setup agent.Setup, config []byte) string {
	sum := sha256.New()
	fmt.Fprintln(sum, setup.Program, strings.Join(environment(record{}, setup.Env), "\n"))
	sum.Write(config)
	return hex.EncodeToString(sum.Sum(nil)[:12])
}
