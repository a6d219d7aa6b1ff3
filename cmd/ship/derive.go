package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"ship/bot"
	"ship/config"
	"ship/integrations"
	"ship/sandbox/agent"
	"ship/sandbox/broker"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// reportEvery is the least time between two updates of a status comment within
// a phase; GitHub allows 80 content writes a minute for a whole installation.
const reportEvery = 12 * time.Second

func paceOf(p integrations.Platform, running time.Duration) session.Pace {
	if p.Pace == nil {
		return session.Pace{Every: reportEvery}
	}
	return p.Pace(running)
}

// modelNames are all models that may be chosen, as "provider/name", sorted.
func (s Settings) modelNames() []string {
	var names []string
	for provider, p := range s.Models {
		for name := range p.Models {
			names = append(names, provider+"/"+name)
		}
	}
	slices.Sort(names)
	return names
}

// defaultModel is the one that is set, or the first of all.
func (s Settings) defaultModel() string {
	if s.Agent.Model != "" {
		return s.Agent.Model
	}
	if names := s.modelNames(); len(names) > 0 {
		return names[0]
	}
	return ""
}

func (s Settings) policy(platforms []integrations.Platform) session.Policy {
	by := map[string]integrations.Platform{}
	for _, p := range platforms {
		by[p.Name] = p
	}
	return session.Policy{
		Model: s.defaultModel(), Models: s.modelNames(),
		BudgetUSD: s.Limits.BudgetUSD, MaxBudgetUSD: s.Limits.MaxBudgetUSD,
		Extend: s.Limits.Extend, BoxUSDPerHour: s.Sandbox.USDPerHour,
		TurnTimeout: time.Duration(s.Limits.TurnTimeout), Boxes: s.boxPolicy(),
		Pace:   func(platform string, running time.Duration) session.Pace { return paceOf(by[platform], running) },
		Help:   func(platform string) string { return bot.HelpText(by[platform].Idiom) },
		Status: func(platform string, v session.View) string { return bot.StatusLine(by[platform].Idiom, v) },
	}
}

// boxPolicy says for how long boxes are kept.
func (s Settings) boxPolicy() lifecycle.Policy {
	p := lifecycle.Default()
	p.IdlePause, p.IdleDestroy = s.Sandbox.IdlePause, s.Sandbox.IdleDestroy
	p.TurnTimeout, p.Cap, p.Warn = s.Limits.TurnTimeout, s.Sandbox.MaxLife, s.Sandbox.Warn
	if plan := s.Sandbox.E2B.MaxLife; s.Sandbox.Provider == "e2b" && p.Cap == 0 && plan > p.TurnTimeout+p.Margin {
		p.Cap = plan // a shorter one may cut a turn, which then goes on in a new box
	}
	return p
}

func (s Settings) brokerProviders() map[string]broker.Provider {
	out := map[string]broker.Provider{}
	for name, p := range s.Models {
		prices := map[string]broker.Price{}
		for model, price := range p.Models {
			prices[model] = broker.Price{Input: price.Input, Output: price.Output, Cached: price.Cached}
		}
		out[name] = broker.Provider{BaseURL: p.BaseURL, APIKey: p.APIKey.Reveal(), Models: prices}
	}
	return out
}

// agentProviders lists the models for the agent, the default's provider and
// the default first.
func (s Settings) agentProviders() []agent.Provider {
	provider, model, _ := strings.Cut(s.defaultModel(), "/")
	var out []agent.Provider
	for _, name := range first(provider, slices.Sorted(maps.Keys(s.Models))) {
		p := agent.Provider{Name: name}
		for _, m := range first(model, slices.Sorted(maps.Keys(s.Models[name].Models))) {
			price := s.Models[name].Models[m]
			p.Models = append(p.Models, agent.Offer{Name: m, Price: agent.Price{Input: price.Input, Output: price.Output, Cached: price.Cached}})
		}
		out = append(out, p)
	}
	return out
}

// first moves a name to the front, if it is there.
func first(name string, names []string) []string {
	if i := slices.Index(names, name); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, name)
	}
	return names
}

// secrets are all that must never leave this process in a text.
func (s Settings) secrets() []string {
	out := []string{s.GitHub.PrivateKey.Reveal(), s.Linear.ClientSecret.Reveal(), s.Slack.BotToken.Reveal(), s.Slack.AppToken.Reveal(), s.Sandbox.E2B.APIKey.Reveal()}
	out = append(out, s.Redis.secrets()...)
	for _, list := range []config.Secrets{s.GitHub.WebhookSecret, s.Linear.WebhookSecret, s.Linear.TokenKey, s.Slack.SigningSecret} {
		out = append(out, list.Reveal()...)
	}
	for _, p := range s.Models {
		out = append(out, p.APIKey.Reveal())
	}
	return append(out, collectorSecrets(os.Environ())...)
}
