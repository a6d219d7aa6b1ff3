package slacktest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"ship/bot/standin"
)

// method is one of the Web API.
type method struct {
	// tier is how often it may be called in a minute.
	tier int
	// scope that is needed, one of several with "|" between; empty: the method
	// sees to it.
	scope string
	// args that there are, apart from the token.
	args string
	// app: it wants the app's own token.
	app bool
	do  func(*Server, args) (object, error)
}

const contentArgs = " text blocks attachments markdown_text metadata link_names parse "

func methods() map[string]method {
	const post = "channel thread_ts" + contentArgs + "unfurl_links unfurl_media mrkdwn username icon_emoji icon_url "
	const lines = "channel cursor inclusive latest limit oldest include_all_metadata "
	const status = "channel_id thread_ts status username icon_emoji icon_url "
	return map[string]method{
		"auth.test":             {tier: special, do: (*Server).authTest},
		"apps.connections.open": {tier: tier1 * 20, app: true, do: (*Server).openConnection},

		"chat.postMessage":   {special, "chat:write", post + "reply_broadcast", false, (*Server).postMessage},
		"chat.postEphemeral": {tier4, "chat:write", post + "user", false, (*Server).postEphemeral},
		"chat.update":        {tier3, "chat:write", "channel ts reply_broadcast" + contentArgs, false, (*Server).updateMessage},
		"chat.delete":        {tier3, "chat:write", "channel ts", false, (*Server).deleteMessage},
		"chat.getPermalink":  {special, "", "channel message_ts", false, (*Server).getPermalink},

		"reactions.add":    {tier3, "reactions:write", "channel timestamp name", false, (*Server).addReaction},
		"reactions.remove": {tier2, "reactions:write", "channel timestamp name", false, (*Server).removeReaction},

		"conversations.replies": {tier3, "", lines + "ts", false, (*Server).replies},
		"conversations.history": {tier3, "", lines, false, (*Server).history},
		"conversations.info":    {tier3, "", "channel include_locale include_num_members", false, (*Server).conversationInfo},
		"conversations.list":    {tier2, "", "cursor limit types exclude_archived team_id", false, (*Server).listConversations},
		"conversations.join":    {tier3, "channels:join", "channel", false, (*Server).joinConversation},
		"conversations.members": {tier4, "", "channel cursor limit", false, (*Server).listMembers},

		"users.conversations":   {tier3, "", "user cursor limit types exclude_archived team_id", false, (*Server).listJoined},
		"users.info":            {tier4, "users:read", "user include_locale", false, (*Server).userInfo},
		"users.lookupByEmail":   {tier3, "users:read.email", "email", false, (*Server).lookupByEmail},
		"usergroups.list":       {tier2, "usergroups:read", "include_count include_disabled include_users team_id", false, (*Server).listGroups},
		"usergroups.users.list": {tier2, "usergroups:read", "usergroup include_disabled team_id", false, (*Server).listGroupUsers},

		"views.open":   {tier4, "", "trigger_id view", false, (*Server).openView},
		"views.push":   {tier4, "", "trigger_id view", false, (*Server).openView},
		"views.update": {tier4, "", "view view_id external_id hash", false, (*Server).updateView},

		"agents.sessions.setStatus":             {tier3, "chat:write", status + "title initiator_user_id", false, (*Server).setSessionStatus},
		"agents.sessions.rename":                {tier3, "chat:write", "channel_id thread_ts title", false, (*Server).renameSession},
		"assistant.threads.setStatus":           {tier3, "chat:write|assistant:write", status + "loading_messages", false, (*Server).setThreadStatus},
		"assistant.threads.setTitle":            {tier3, "chat:write|assistant:write", "channel_id thread_ts title", false, (*Server).renameSession},
		"assistant.threads.setSuggestedPrompts": {tier3, "chat:write|assistant:write", "channel_id thread_ts title prompts", false, (*Server).setPrompts},

		"files.info": {tier4, "files:read", "file count page limit cursor", false, (*Server).fileInfo},
	}
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	defer s.touch()
	name := r.PathValue("method")
	if s.Strike(w, r, name) {
		return
	}
	in, err := readArgs(w, r)
	if err == nil {
		var out object
		if out, err = s.call(name, in); err == nil {
			out["ok"] = true
			s.scopeHeader(w, name)
			standin.WriteJSON(w, http.StatusOK, mustJSON(out))
			return
		}
	}
	s.writeProblem(w, err)
}

func (s *Server) writeProblem(w http.ResponseWriter, err error) {
	p, ok := err.(problem)
	if !ok {
		p = refuse("fatal_error")
		s.Note("answered with fatal_error: %v", err)
	}
	status := http.StatusOK
	if p.retry > 0 {
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.Itoa(seconds(p.retry)))
	}
	standin.WriteJSON(w, status, p.body(s.provided()))
}

func (s *Server) provided() string { return strings.Join(s.opts.Scopes, ",") }

// scopeHeader tells the scopes, as Slack does with every answer.
func (s *Server) scopeHeader(w http.ResponseWriter, name string) {
	w.Header().Set("X-OAuth-Scopes", s.provided())
	if scope := s.methods[name].scope; scope != "" {
		w.Header().Set("X-Accepted-OAuth-Scopes", strings.ReplaceAll(scope, "|", ","))
	}
}

// call does what a method does.
func (s *Server) call(name string, in args) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.methods[name]
	if !ok {
		s.Note("no such method: %s", name)
		return nil, refuse("unknown_method")
	}
	if err := s.authorize(m, in.token); err != nil {
		return nil, err
	}
	if err := s.pace.call(name, m.tier, s.now()); err != nil {
		return nil, err
	}
	if m.scope != "" && !slices.ContainsFunc(strings.Split(m.scope, "|"), s.has) {
		return nil, missing(m.scope)
	}
	for key := range in.values {
		if !slices.Contains(strings.Fields(m.args), key) {
			s.Note("%s: there is no argument %s", name, key)
		}
	}
	return m.do(s, in)
}

// authorize looks at a token. Of a token that was revoked Slack says so, of
// one whose app was removed that the account is inactive.
func (s *Server) authorize(m method, token string) error {
	isBot, isApp := token == s.token, token == s.opts.AppToken
	switch {
	case token == "":
		return refuse("not_authed")
	case !isBot && !isApp:
		return refuse("invalid_auth")
	case isBot && s.tokenGone != "":
		return refuse(s.tokenGone)
	case isApp != m.app:
		return refuse("not_allowed_token_type")
	}
	return nil
}

// has says whether the token has a scope.
func (s *Server) has(scope string) bool { return slices.Contains(s.opts.Scopes, scope) }

// needs refuses what the token has no scope for.
func (s *Server) needs(scope string) error {
	if !s.has(scope) {
		return missing(scope)
	}
	return nil
}

func (s *Server) authTest(args) (object, error) {
	return object{
		"url": "https://" + domain + ".slack.com/", "team": "Acme", "team_id": s.teamID, "user": s.bot.handle,
		"user_id": s.bot.id, "bot_id": s.bot.botID, "is_enterprise_install": false,
	}, nil
}
