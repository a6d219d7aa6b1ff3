package slacktest

import (
	"encoding/json"
	"slices"
	"time"
)

// session is one of the app's, in a thread.
type session struct {
	channel       *channel
	thread        string
	status, title string
	// lapses is when the status goes back to active; zero: never.
	lapses time.Time
	// bridged: it was set by the older call.
	bridged   bool
	initiator *user
}

// How long a status lasts that is not said again.
const (
	processingLasts = time.Hour
	bridgedLasts    = 2 * time.Minute
)

func (a *session) at(now time.Time) string {
	if !a.lapses.IsZero() && !now.Before(a.lapses) {
		return "active"
	}
	return a.status
}

func (a *session) set(status string, now time.Time, lasts time.Duration) {
	a.status, a.lapses, a.bridged = status, time.Time{}, lasts == bridgedLasts
	if status == "processing" {
		a.lapses = now.Add(lasts)
	}
}

// session finds that of a thread, or nil.
func (s *Server) session(c *channel, thread string) *session {
	return find(s.sessions, func(a *session) bool { return a.channel == c && a.thread == thread })
}

// threaded finds the thread that a call is about. Assumed: it must have begun.
func (s *Server) threaded(in args) (*channel, string, error) {
	if in.get("channel_id") == "" || in.get("thread_ts") == "" {
		return nil, "", badArguments("missing required field: channel_id and thread_ts")
	}
	c, err := s.writable(in.get("channel_id"))
	if err != nil {
		return nil, "", err
	}
	m := c.find(in.get("thread_ts"))
	if m == nil || m.thread != "" {
		return nil, "", refuse("thread_not_found")
	}
	return c, m.ts, s.customised(in)
}

func (s *Server) setSessionStatus(in args) (object, error) {
	c, thread, err := s.threaded(in)
	if err != nil {
		return nil, err
	}
	status, title := in.get("status"), in.get("title")
	if !slices.Contains([]string{"active", "processing", "suspended", "closed"}, status) {
		return nil, badArguments("status: %q is none", status)
	}
	if length(title) > 200 {
		return nil, badArguments("title: must be less than 201 characters")
	}
	var initiator *user
	if id := in.get("initiator_user_id"); id != "" {
		if initiator = s.userByID(id); initiator == nil || !c.has(initiator) {
			return nil, refuse("user_not_in_channel")
		}
	}
	a := s.session(c, thread)
	if a == nil {
		a = &session{channel: c, thread: thread, title: title, initiator: initiator}
		s.sessions = append(s.sessions, a)
	}
	a.set(status, s.now(), processingLasts)
	out := object{"status": status, "agent_status": status, "title": a.title}
	if status == "processing" && !slices.Contains(s.opts.Events, "agent_session_stopped") {
		out["warning"] = "missing_agent_session_stopped_subscription" // the name is assumed
	}
	return out, nil
}

func (s *Server) renameSession(in args) (object, error) {
	c, thread, err := s.threaded(in)
	if err != nil {
		return nil, err
	}
	title := in.get("title")
	if title == "" || length(title) > 200 {
		return nil, badArguments("title: must be between 1 and 200 characters")
	}
	a := s.session(c, thread)
	if a == nil {
		return nil, refuse("session_not_found") // the name is assumed
	}
	a.title = title
	return object{"title": title}, nil
}

// setThreadStatus is the older call, which works through a bridge: whatever
// text there is means that the app is at work.
func (s *Server) setThreadStatus(in args) (object, error) {
	c, thread, err := s.threaded(in)
	if err != nil {
		return nil, err
	}
	a := s.session(c, thread)
	if a == nil {
		a = &session{channel: c, thread: thread}
		s.sessions = append(s.sessions, a)
	}
	status := "active"
	if in.get("status") != "" {
		status = "processing"
	}
	a.set(status, s.now(), bridgedLasts)
	return object{}, nil
}

// calm ends a status of the older call, as whatever the app says does.
func (s *Server) calm(c *channel, thread string) {
	if a := s.session(c, thread); a != nil && a.bridged {
		a.set("active", s.now(), bridgedLasts)
	}
}

func (s *Server) setPrompts(in args) (object, error) {
	c, err := s.writable(in.get("channel_id"))
	if err != nil {
		return nil, err
	}
	var prompts []struct{ Title, Message string }
	if json.Unmarshal([]byte(in.get("prompts")), &prompts) != nil || len(prompts) == 0 || len(prompts) > 4 {
		return nil, badArguments("prompts: must be between 1 and 4 items")
	}
	for _, p := range prompts {
		if p.Title == "" || p.Message == "" {
			return nil, badArguments("prompts: missing required field")
		}
	}
	if thread := in.get("thread_ts"); thread != "" && c.find(thread) == nil {
		return nil, refuse("thread_not_found")
	}
	return object{}, nil
}
