package main

import (
	"time"

	"ship/config"
	"ship/integrations"
)

// Settings is ship.yaml.
type Settings struct {
	Listen    string `yaml:"listen"`
	PublicURL string `yaml:"public_url"`
	DataDir   string `yaml:"data_dir"`
	Redis     struct {
		URL config.Secret `yaml:"url"`
	} `yaml:"redis"`
	integrations.Settings `yaml:",inline"`
	Sandbox               struct {
		Provider    string        `yaml:"provider"`
		Max         int           `yaml:"max"`
		IdleDestroy time.Duration `yaml:"idle_destroy"`
		Local       struct {
			Isolation string `yaml:"isolation"`
			Memory    int64  `yaml:"memory"`
			PIDs      int64  `yaml:"pids"`
		} `yaml:"local"`
	} `yaml:"sandbox"`
	Agent struct {
		Model    string `yaml:"model"`
		OpenCode string `yaml:"opencode"`
	} `yaml:"agent"`
	Models map[string]ModelProvider `yaml:"models"`
	Limits struct {
		TurnTimeout  time.Duration `yaml:"turn_timeout"`
		Stall        time.Duration `yaml:"stall"`
		Retries      int           `yaml:"retries"`
		ModelCalls   int           `yaml:"model_calls"`
		BudgetUSD    float64       `yaml:"budget_usd"`
		MaxBudgetUSD float64       `yaml:"max_budget_usd"`
	} `yaml:"limits"`
}

// ModelProvider is one entry of models.
type ModelProvider struct {
	BaseURL string           `yaml:"base_url"`
	APIKey  config.Secret    `yaml:"api_key"`
	Models  map[string]Price `yaml:"models"`
}

// Price in USD per million tokens.
type Price struct {
	Input  float64 `yaml:"input"`
	Output float64 `yaml:"output"`
	Cached float64 `yaml:"cached"`
}
