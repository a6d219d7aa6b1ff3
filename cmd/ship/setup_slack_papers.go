package main

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"ship/integrations/slack"
)

// The files that `ship setup slack` writes, beside the settings: the first, and
// one of the others.
const (
	slackBotFile     = "slack-bot-token"
	slackSigningFile = "slack-signing-secret"
	slackAppFile     = "slack-app-token"
)

// slackPapers are the files of an app in Slack.
type slackPapers struct{ drawer }

// prepare makes sure that keep will work, as far as that can be known.
func (p slackPapers) prepare(socket bool) error {
	return prepareFolder(p.dir, []string{slackBotFile, slackWay(socket)}, p.force)
}

// slackWay is the file with what proves that something comes from Slack.
func slackWay(socket bool) string {
	if socket {
		return slackAppFile
	}
	return slackSigningFile
}

// keep writes the secrets, and adds what names them to the settings. Performed
// again after an error, with force, it comes to the same.
func (p slackPapers) keep(reg slack.Registration, s slack.Settings) (kept, error) {
	way := s.AppToken.Reveal()
	if !s.SocketMode() {
		way = s.SigningSecret[0].Reveal()
	}
	var k kept
	for _, f := range []struct{ name, text string }{{slackBotFile, s.BotToken.Reveal()}, {slackWay(s.SocketMode()), way}} {
		if err := writeWhole(p.path(f.name), f.text+"\n", p.force); err != nil {
			return k, err
		}
		k.secrets = append(k.secrets, p.path(f.name))
	}
	text, err := p.section(s)
	if err != nil {
		return k, err
	}
	k.left, err = newSection{
		config: p.config, name: "slack", publicURL: reg.PublicURL, text: text,
		same: func(now Settings) bool { return sameSlack(now.Slack, s) },
	}.extend()
	return k, err
}

// sameSlack tells whether settings lead to the same app by the same way. An
// older signing secret may be there beside the new one.
func sameSlack(now, s slack.Settings) bool {
	at := func(s slack.Settings) string { return strings.TrimRight(s.APIURL, "/") }
	return now.BotToken.Reveal() == s.BotToken.Reveal() && now.AppToken.Reveal() == s.AppToken.Reveal() && at(now) == at(s) &&
		(s.SocketMode() || len(now.SigningSecret) > 0 && now.SigningSecret[0].Reveal() == s.SigningSecret[0].Reveal())
}

// section is the part of ship.yaml that an app brings along.
func (p slackPapers) section(s slack.Settings) (string, error) {
	type section struct {
		BotTokenFile      string `yaml:"bot_token_file"`
		SigningSecretFile string `yaml:"signing_secret_file,omitempty"`
		AppTokenFile      string `yaml:"app_token_file,omitempty"`
		APIURL            string `yaml:"api_url,omitempty"`
	}
	out := section{BotTokenFile: p.reference(slackBotFile), SigningSecretFile: p.reference(slackSigningFile)}
	if s.SocketMode() {
		out.SigningSecretFile, out.AppTokenFile = "", p.reference(slackAppFile)
	}
	if s.APIURL != slack.DefaultAPIURL {
		out.APIURL = s.APIURL
	}
	b, err := yaml.Marshal(map[string]section{"slack": out})
	return string(b), err
}
