package slack

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	api "github.com/slack-go/slack"

	"ship/session"
)

const (
	sayElsewhere = "Sorry, I was installed for another workspace, so I take no work here. Whoever runs me can install me in this one."
	sayChannel   = "Sorry, I take no work in this channel. Ask me in one that I was set up for, or have whoever runs me add this one to `slack.channels`."
	sayGroup     = "Sorry, you are in none of the user groups that may have me work. An admin of this workspace can add you to one, or whoever runs me can change `slack.groups`; it takes me a few minutes to notice."
)

// sayNoGroups: without the scope, nobody can be told from anybody.
const sayNoGroups = "I cannot see who is in the user groups that may have me work, so I take nothing on. Whoever runs me has to check `slack.groups`, and that the app has the scope `usergroups:read`."

// groupID is what the id of a user group looks like. A handle has no capitals.
var groupID = regexp.MustCompile(`^S[A-Z0-9]{2,30}$`)

// keptOut by the settings: the sentence that says so; empty: they may command
// here as far as that is up to Slack.
func (w *work) keptOut(ctx context.Context, m member) (refusal string, err error) {
	if listed, err := w.listed(ctx); err != nil || !listed {
		return sayChannel, err
	}
	if among, err := w.among(ctx, m.ID); err != nil || !among {
		return sayGroup, err
	}
	return "", nil
}

// listed: this is one of the channels of the settings, or they name none.
func (w *work) listed(ctx context.Context) (bool, error) {
	channels := w.settings.Channels
	if len(channels) == 0 || slices.Contains(channels, w.thread.channel) {
		return true, nil
	}
	if !slices.ContainsFunc(channels, byName) {
		return false, nil
	}
	name, err := w.channelName(ctx)
	return name != "" && slices.ContainsFunc(channels, func(c string) bool { return sameName("#", c, name) }), err
}

// channelID is what the id of a channel looks like. A name has no capitals.
var channelID = regexp.MustCompile(`^[CGD][A-Z0-9]{2,30}$`)

// byName: a channel that is not given by its id.
func byName(channel string) bool { return !channelID.MatchString(channel) }

// sameName compares a name, which may begin with a sign, with one that does not.
func sameName(sign, given, name string) bool {
	return strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(given), sign), name)
}

// channelName is what the channel is called; empty where it has no name, as in
// direct messages, or where our token may not know it.
func (w *work) channelName(ctx context.Context) (string, error) {
	return w.app.directory.channels.of(w.thread.team+"/"+w.thread.channel, func() (string, error) {
		const method = "conversations.info"
		var found answer
		err := w.app.call(ctx, Thinking, w.call(method), func(ctx context.Context) (err error) {
			found, err = w.app.ask(ctx, method, url.Values{"channel": {w.thread.channel}})
			return err
		})
		if code(err) == "missing_scope" {
			w.app.log.WarnContext(ctx, "slack does not tell the name of a channel", "channel", w.thread.channel, "err", detailed(err))
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("look up the channel: %w", err)
		}
		if found.Channel.Party {
			return "", nil
		}
		return found.Channel.Name, nil
	})
}

// among: somebody is in one of the user groups of the settings, or they name
// none.
func (w *work) among(ctx context.Context, user string) (bool, error) {
	for _, group := range w.settings.Groups {
		id, err := w.groupOf(ctx, strings.TrimSpace(group))
		if err != nil {
			return false, err
		}
		if id == "" {
			w.app.log.WarnContext(ctx, "there is no such user group in slack", "group", group)
			continue
		}
		users, err := w.membersOf(ctx, id)
		if err != nil || slices.Contains(users, user) {
			return err == nil, err
		}
	}
	return len(w.settings.Groups) == 0, nil
}

// groupOf is the id of a user group that the settings name by id or handle;
// empty: there is none.
func (w *work) groupOf(ctx context.Context, name string) (id string, err error) {
	if groupID.MatchString(name) {
		return name, nil
	}
	handles, err := w.app.directory.groups.of(w.thread.team, func() (map[string]string, error) {
		var all []api.UserGroup
		err := w.app.call(ctx, Thinking, w.call("usergroups.list"), func(ctx context.Context) (err error) {
			all, err = w.app.client.GetUserGroupsContext(ctx)
			return err
		})
		ids := make(map[string]string, len(all))
		for _, g := range all {
			ids[strings.ToLower(g.Handle)] = g.ID
		}
		return ids, groupsHidden(err)
	})
	return handles[strings.ToLower(strings.TrimPrefix(name, "@"))], err
}

// membersOf lists who is in a user group; nobody is in one that is gone.
func (w *work) membersOf(ctx context.Context, id string) ([]string, error) {
	return w.app.directory.members.of(w.thread.team+"/"+id, func() (users []string, err error) {
		err = w.app.call(ctx, Thinking, w.call("usergroups.users.list"), func(ctx context.Context) (err error) {
			users, err = w.app.client.GetUserGroupMembersContext(ctx, id)
			return err
		})
		if c := code(err); c == "no_such_subteam" || c == "subteam_not_found" {
			w.app.log.WarnContext(ctx, "there is no such user group in slack", "group", id)
			return nil, nil
		}
		return users, groupsHidden(err)
	})
}

// groupsHidden is what hinders us to see who is in a group.
func groupsHidden(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("look up a user group: %w", err)
	if code(err) == "missing_scope" {
		return &session.Problem{Say: sayNoGroups, Err: detailed(err), Again: true}
	}
	return err
}
