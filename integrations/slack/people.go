package slack

import (
	"cmp"
	"context"
	"fmt"

	api "github.com/slack-go/slack"

	"ship/bot"
	"ship/session"
)

// What people are told who may not command, whatever they may do elsewhere.
const (
	sayExternal = "Sorry, I only work for people of the workspace that runs me. Ask somebody there to ask me."
	sayNoPerson = "Sorry, I only work for people, and not for other bots. A person can ask me for this."
	sayGone     = "Sorry, that account is deactivated, so I may not act for it. Somebody else can ask me for this."
	sayNobody   = "Sorry, Slack does not tell me who you are, so I may not act for you. Somebody else of this workspace can ask me."
)

// slackbot is no app's bot, and yet no person.
const slackbot = "USLACKBOT"

// member is somebody as Slack knows them.
type member struct {
	bot.Asker
	handle string
	// barred is the sentence that says why they may not command; empty: they may,
	// as far as that is up to Slack.
	barred string
}

// stranger is somebody who got no further, told apart by account.
func (m member) stranger() session.Person { return session.Person{Login: m.ID, Name: m.Name} }

// member asks Slack about whoever asks, every few minutes at most. Slack vouches
// for the account and the address; names can be chosen.
func (w *work) member(ctx context.Context, by session.Person) (member, error) {
	nobody := member{Asker: bot.Asker{Platform: Platform, ID: by.Login, Name: by.Name}}
	user, foreign, err := parseLogin(by.Login)
	switch {
	case err != nil:
		nobody.barred = sayNobody
		return nobody, nil
	case foreign != "":
		nobody.barred = sayExternal
		return nobody, nil
	}
	return w.person(ctx, user)
}

// person is the member with a user's id.
func (w *work) person(ctx context.Context, user string) (member, error) {
	return w.app.directory.people.of(w.thread.team+"/"+user, func() (member, error) {
		self, err := w.app.self(ctx)
		if err != nil {
			return member{}, err
		}
		var found *api.User
		err = w.app.call(ctx, Thinking, w.call("users.info"), func(ctx context.Context) (err error) {
			found, err = w.app.client.GetUserInfoContext(ctx, user)
			return err
		})
		switch code(err) {
		case "user_not_found", "user_not_visible", "users_not_found":
			return member{Asker: bot.Asker{Platform: Platform, ID: user}, barred: sayNobody}, nil
		}
		if err != nil {
			return member{}, fmt.Errorf("look up who asks: %w", err)
		}
		return self.introduced(found), nil
	})
}

// introduced is somebody as we see them.
func (i identity) introduced(u *api.User) member {
	m := member{handle: u.Name, Asker: bot.Asker{
		Platform: Platform, ID: u.ID, Name: cmp.Or(u.Profile.DisplayName, u.RealName, u.Name), Email: u.Profile.Email,
	}}
	switch {
	case u.IsBot, u.IsWorkflowBot, u.IsConnectorBot, u.ID == slackbot:
		m.barred = sayNoPerson
	case u.IsStranger, !i.ours(u):
		m.barred = sayExternal
	case u.Deleted:
		m.barred = sayGone
	}
	return m
}

// ours: they are of this workspace, or of another of the same company.
func (i identity) ours(u *api.User) bool {
	if u.TeamID == i.team {
		return true
	}
	return i.enterprise != "" && (u.Enterprise.EnterpriseID == i.enterprise || u.TeamID == i.enterprise)
}

// bystander is somebody who needs no right for what they ask, by a name that can
// be shown. A stop does not fail because Slack does not say who that is.
func (w *work) bystander(ctx context.Context, by session.Person) (member, error) {
	m, err := w.member(ctx, by)
	if err == nil {
		return m, nil
	}
	if ctx.Err() != nil {
		return member{}, err
	}
	w.app.log.WarnContext(ctx, "who asked in slack was not found out", "session", string(w.job.State.ID), "err", err)
	return member{Asker: bot.Asker{Platform: Platform, ID: by.Login, Name: by.Name}}, nil
}
