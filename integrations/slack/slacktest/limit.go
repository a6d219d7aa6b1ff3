package slacktest

import (
	"maps"
	"slices"
	"time"
)

// Calls per minute of the tiers. Slack promises at least so many and grants
// more at times; assumed: just so many in any minute.
const (
	tier1 = 1
	tier2 = 20
	tier3 = 50
	tier4 = 100
	// special is "some hundreds" for messages, and the like.
	special = 300
)

// Limits on how fast the app may be. What is zero is as with Slack.
type Limits struct {
	// PerMinute is how often a method may be called, if not as its tier says;
	// negative: any number of times. The key "" is for all methods.
	PerMinute map[string]int
	// ChannelInterval is the time between messages in a channel; zero: one
	// second; negative: none.
	ChannelInterval time.Duration
	// ChannelBurst is how many messages may come at once. Slack lets "short
	// bursts" pass; assumed, when zero: one.
	ChannelBurst int
	// UpdateInterval is the time between changes of one message; zero: three
	// seconds; negative: none. Assumed: it is enforced, as a rate limit.
	UpdateInterval time.Duration
	// Page is how many things a list returns at most, whatever was asked for,
	// as Slack reserves the right to; zero: what was asked for.
	Page int
}

// NoLimits is for tests of something else.
func NoLimits() Limits {
	return Limits{PerMinute: map[string]int{"": -1}, ChannelInterval: -1, UpdateInterval: -1}
}

func (l Limits) withDefaults() Limits {
	if l.ChannelInterval == 0 {
		l.ChannelInterval = time.Second
	}
	if l.ChannelBurst == 0 {
		l.ChannelBurst = 1
	}
	if l.UpdateInterval == 0 {
		l.UpdateInterval = 3 * time.Second
	}
	l.PerMinute = maps.Clone(l.PerMinute)
	return l
}

// pace is what was used of the limits.
type pace struct {
	limits Limits
	// recent calls of each method, in the last minute.
	recent map[string][]time.Time
	// due is when each channel is free again.
	due map[*channel]time.Time
}

func newPace(l Limits) pace {
	return pace{limits: l, recent: map[string][]time.Time{}, due: map[*channel]time.Time{}}
}

func (p *pace) perMinute(method string, tier int) int {
	if n, ok := p.limits.PerMinute[method]; ok {
		return n
	}
	if n, ok := p.limits.PerMinute[""]; ok {
		return n
	}
	return tier
}

// call takes one call off a method's allowance. Assumed: a refused call costs
// nothing.
func (p *pace) call(method string, tier int, now time.Time) error {
	allowed := p.perMinute(method, tier)
	if allowed < 0 {
		return nil
	}
	recent := slices.DeleteFunc(p.recent[method], func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	p.recent[method] = recent
	if len(recent) >= allowed {
		if len(recent) == 0 {
			return limited(time.Minute)
		}
		return limited(recent[len(recent)-allowed].Add(time.Minute).Sub(now))
	}
	p.recent[method] = append(recent, now)
	return nil
}

// message takes one message off a channel's allowance.
func (p *pace) message(c *channel, now time.Time) error {
	interval := p.limits.ChannelInterval
	if interval < 0 {
		return nil
	}
	due := p.due[c]
	if due.Before(now) {
		due = now
	}
	if early := due.Sub(now) - time.Duration(p.limits.ChannelBurst-1)*interval; early > 0 {
		return limited(early)
	}
	p.due[c] = due.Add(interval)
	return nil
}

// update says whether a message may be changed, since it last was.
func (p *pace) update(m *message, now time.Time) error {
	if early := m.updated.Add(p.limits.UpdateInterval).Sub(now); p.limits.UpdateInterval > 0 && early > 0 {
		return limited(early)
	}
	return nil
}

// Spend uses up a part of a method's allowance of the minute, as other
// processes with the same token would.
func (s *Server) Spend(method string, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range calls {
		s.pace.recent[method] = append(s.pace.recent[method], s.now())
	}
}
