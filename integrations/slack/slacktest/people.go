package slacktest

import "strings"

func (s *Server) userInfo(in args) (object, error) {
	u := s.userByID(in.get("user"))
	if u == nil {
		return nil, refuse("user_not_found")
	}
	return object{"user": s.renderUser(u)}, nil
}

// lookupByEmail finds people of this workspace only.
func (s *Server) lookupByEmail(in args) (object, error) {
	u := find(s.users, func(u *user) bool {
		return !u.bot && !u.gone && u.team == s.teamID && strings.EqualFold(u.email, in.get("email"))
	})
	if u == nil {
		return nil, refuse("users_not_found")
	}
	return object{"user": s.renderUser(u)}, nil
}

// listGroups lists the user groups. Assumed: none is disabled.
func (s *Server) listGroups(in args) (object, error) {
	groups := []object{}
	for _, g := range s.groups {
		o := object{"id": g.id, "team_id": s.teamID, "is_usergroup": true, "name": g.handle, "handle": g.handle, "user_count": len(g.members)}
		if in.yes("include_users") {
			o["users"] = userIDs(g.members)
		}
		groups = append(groups, o)
	}
	return object{"usergroups": groups}, nil
}

func (s *Server) listGroupUsers(in args) (object, error) {
	g := find(s.groups, func(g *group) bool { return g.id == in.get("usergroup") })
	if g == nil {
		return nil, refuse("no_such_subteam")
	}
	return object{"users": userIDs(g.members)}, nil
}

func userIDs(users []*user) []string {
	ids := []string{}
	for _, u := range users {
		ids = append(ids, u.id)
	}
	return ids
}

// renderUser is somebody as the app may see them. Assumed: of people of other
// workspaces there is no address.
func (s *Server) renderUser(u *user) object {
	profile := object{"real_name": u.name, "display_name": u.handle, "team": u.team}
	if u.email != "" && u.team == s.teamID && s.has("users:read.email") {
		profile["email"] = u.email
	}
	o := object{
		"id": u.id, "team_id": u.team, "name": u.handle, "real_name": u.name, "deleted": u.gone, "is_bot": u.bot,
		"is_app_user": false, "is_admin": u.admin, "is_owner": false, "is_primary_owner": false,
		"is_restricted": u.guest || u.single, "is_ultra_restricted": u.single, "tz": "Europe/Berlin", "profile": profile,
	}
	if u.team != s.teamID {
		o["is_stranger"] = true
	}
	return o
}
