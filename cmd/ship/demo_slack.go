package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"ship/config"
	"ship/integrations/slack"
	"ship/integrations/slack/slacktest"
)

const demoChannel = "shop"

// slackScene is a channel in a stand-in for Slack, in which ship is mentioned. What
// is asked names an issue in Linear, which shows how it goes.
type slackScene struct {
	*stage
	slack *slacktest.Server
	issue *linearScene
	// root is the message that begins the thread.
	root string
	// shown is what was shown of each message last, and thanked whether the
	// reaction was.
	shown   map[string]string
	thanked bool
}

func inSlack(s *stage) (scene, error) {
	stand, err := slacktest.New(slacktest.Options{SigningSecret: demoSecret})
	if err != nil {
		return scene{}, err
	}
	channel := stand.CreateChannel(slacktest.Channel{Name: demoChannel, Members: []string{demoPerson}})
	issue, err := openLinear(s)
	if err != nil {
		return scene{}, errors.Join(err, stand.Close())
	}
	l := &slackScene{stage: s, slack: stand, issue: issue, shown: map[string]string{}}
	s.settings.Slack = slack.Settings{
		BotToken: config.NewSecret(stand.BotToken()), SigningSecret: config.NewSecrets(demoSecret), APIURL: stand.APIURL(),
	}
	s.settings.Routes.Channels = map[string]string{channel: demoRepo}
	return scene{
		where: "Slack on " + stand.URL + "; Linear on " + issue.linear.URL, ask: l.ask, listen: l.listen, ending: l.ending,
		close: func() error { return errors.Join(stand.Close(), issue.linear.Close()) },
	}, nil
}

// ask mentions ship, which Slack tells twice: as a mention and as a message.
func (l *slackScene) ask(ctx context.Context, url string) error {
	text := sampleTitle + ": https://linear.app/acme/issue/" + l.issue.issue
	root, all := l.slack.Mention(slacktest.Said{Channel: demoChannel, By: demoPerson, Text: "@ship " + text})
	l.root = root
	l.line("@"+demoPerson, "in #"+demoChannel+" of Slack: @ship "+text)
	for _, d := range all {
		answer, err := l.slack.Deliver(ctx, url+"/webhooks/slack", d)
		if err != nil {
			return err
		}
		if answer.Status != http.StatusOK {
			return fmt.Errorf("the event was answered with %d", answer.Status)
		}
	}
	return nil
}

// listen prints what came into the thread since the last time, or changed
// there.
func (l *slackScene) listen() {
	l.issue.watch()
	for _, m := range l.slack.Thread(demoChannel, l.root) {
		if m.TS == l.root && len(m.Reactions) > 0 && !l.thanked {
			l.thanked = true
			l.line("Slack", "reaction  👀 on the message")
		}
		what, before := "message", l.shown[m.TS]
		if before != "" {
			what = "changed"
		}
		if m.By == demoPerson || m.Plain == before {
			continue
		}
		l.shown[m.TS] = m.Plain
		l.line("Slack", fmt.Sprintf("%-9s %s", what, shorten(m.Plain, 160)))
	}
}

// ending shows the thread as it is in the end.
func (l *slackScene) ending() {
	l.title("The thread in #" + demoChannel + " of Slack")
	for _, m := range l.slack.Thread(demoChannel, l.root) {
		fmt.Fprintf(l.out, "  %s\n%s\n", l.paint(bold, m.By), indent(m.Plain))
	}
	l.title(l.issue.issue + " in Linear, which was named: " + l.issue.state)
	l.issue.attached()
}
