package slacktest

import "slices"

// Person is somebody to be made by hand. Others are made on first sight:
// "ada" is Ada, ada@acme.example.
type Person struct {
	// Handle names them here.
	Handle, Name, Email string
	// Team is the id of another workspace, for people of Slack Connect; empty:
	// this one.
	Team string
	// Guest of several channels, or of a Single one. Gone: deactivated.
	Guest, Single, Gone bool
	Admin               bool
	// Bot of another app.
	Bot bool
}

// AddPerson makes or changes somebody and returns the id.
func (s *Server) AddPerson(p Person) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.person(p.Handle)
	u.guest, u.single, u.gone, u.admin, u.bot = p.Guest, p.Single, p.Gone, p.Admin, p.Bot
	if p.Name != "" {
		u.name = p.Name
	}
	if p.Email != "" {
		u.email = p.Email
	}
	if p.Team != "" {
		u.team = p.Team
	}
	if p.Bot && u.botID == "" {
		u.botID = newID("B")
	}
	return u.id
}

// PersonID returns somebody's id.
func (s *Server) PersonID(handle string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.person(handle).id
}

// Channel is one to be made by hand.
type Channel struct {
	// Name without the "#".
	Name string
	// Private to its members; Group: a direct message between several.
	Private, Group bool
	// Shared with another workspace (Slack Connect).
	Shared bool
	// Members by handle. Whoever writes becomes one.
	Members []string
	// NoApp: the app was not invited.
	NoApp bool
}

// CreateChannel makes a channel and returns its id.
func (s *Server) CreateChannel(c Channel) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := &channel{id: newID("C"), name: c.Name, kind: kindPublic, shared: c.Shared}
	switch {
	case c.Group:
		made.id, made.kind = newID("G"), kindParty
	case c.Private:
		made.kind = kindPrivate
	}
	if !c.NoApp {
		made.members = append(made.members, s.bot)
	}
	for _, handle := range c.Members {
		made.members = append(made.members, s.person(handle))
	}
	s.channels = append(s.channels, made)
	return made.id
}

// ChannelID returns the id of a channel by its name, or of the conversation of
// somebody with the app for "@ada".
func (s *Server) ChannelID(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(name) > 1 && name[0] == '@' {
		return s.direct(s.person(name[1:])).id
	}
	return s.mustChannel(name).id
}

// Invite has the app be invited to a channel.
func (s *Server) Invite(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.mustChannel(channel); !c.has(s.bot) {
		c.members = append(c.members, s.bot)
	}
}

// Remove has the app be removed from a channel.
func (s *Server) Remove(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mustChannel(channel)
	c.members = slices.DeleteFunc(c.members, func(u *user) bool { return u == s.bot })
}

// Archive ends a channel.
func (s *Server) Archive(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustChannel(channel).archived = true
}

// CreateGroup makes a user group of people by their handles, and returns its id.
func (s *Server) CreateGroup(handle string, members ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &group{id: newID("S"), handle: handle}
	for _, member := range members {
		g.members = append(g.members, s.person(member))
	}
	s.groups = append(s.groups, g)
	return g.id
}

// File is something that somebody uploaded.
type File struct {
	Name, MIME string
	By         string
	Content    []byte
}

// Upload makes a file and returns its id, for Said.Files. The app sees it when
// it was shared in a channel that it is in.
func (s *Server) Upload(f File) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := &file{id: newID("F"), name: f.Name, mime: f.MIME, by: s.person(f.By), content: f.Content, created: s.now()}
	s.files = append(s.files, made)
	return made.id
}

// SetScopes changes what the bot's token may do, as installing anew does.
func (s *Server) SetScopes(scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Scopes = scopes
}
