package slack

import (
	"context"
	"fmt"
	"time"

	"ship/session"
)

// Priority says what may wait for what.
type Priority int

// The priorities, the least urgent first.
const (
	// Moving is progress in the living message. What comes later says more.
	Moving Priority = iota
	// Thinking is what people see first, and what has to be read for it.
	Thinking
	// Asking is a question to a person.
	Asking
	// Settling is how it ended.
	Settling
	priorities
)

// held is the share of an allowance that each leaves to the more urgent. So
// progress comes to rest first, and the last of all is for telling the end.
var held = [priorities]float64{Moving: 0.4, Thinking: 0.1, Asking: 0.05, Settling: 0}

// What Slack promises in a minute, to one app in one workspace for one method.
// At times it grants more.
const (
	tier2 = 20
	tier3 = 50
	tier4 = 100
	// tierSpecial is "some hundreds".
	tierSpecial = 300
)

// perMinute is what Slack's reference says of the methods that we call. It has
// no number for those of tier special.
var perMinute = map[string]int64{
	"auth.test":                 tierSpecial,
	"chat.postMessage":          tierSpecial,
	"chat.postEphemeral":        tier4,
	"chat.update":               tier3,
	"chat.delete":               tier3,
	"reactions.add":             tier3,
	"reactions.remove":          tier2,
	"conversations.replies":     tier3,
	"conversations.history":     tier3,
	"conversations.info":        tier3,
	"users.conversations":       tier3,
	"users.info":                tier4,
	"usergroups.list":           tier2,
	"usergroups.users.list":     tier2,
	"files.info":                tier4,
	"agents.sessions.setStatus": tier3,
}

const (
	// burst is the part of a minute's allowance that may be used at once, and
	// refill how long it takes to come in again: together with what comes in,
	// no minute sees more than the allowance.
	burst  = 5 // a fifth
	refill = time.Minute / (burst - 1)
	// Into one channel Slack takes a message in a second, and short bursts.
	channelBurst = 5
	// channelRefill is a little longer than that many seconds, for the way to
	// Slack does not always take the same time.
	channelRefill = channelBurst * 1100 * time.Millisecond
	// maxBlock is how long nobody asks after Slack refused for the rate, however
	// long it said.
	maxBlock = 10 * time.Minute
)

// call is what Slack counts. The channel matters only for new messages.
type call struct{ team, method, channel string }

// governor shares out what Slack lets us do in each workspace, among all that
// want to and over all gateways. It is safe for concurrent use.
type governor struct {
	quota session.Quota
	queue *session.Queue
}

func newGovernor(q session.Quota) *governor {
	return &governor{quota: q, queue: session.NewQueue(q)}
}

// acquire returns when a call may be made, or with the cause of ctx's end. What
// is to be said is best made up afterwards, for it may have been a while.
func (g *governor) acquire(ctx context.Context, p Priority, c call) error {
	all, err := c.demands(p)
	if err != nil {
		return err
	}
	return g.queue.Wait(ctx, all...)
}

// try is acquire for what is not worth waiting for, such as progress, of which
// only the newest counts: it takes a call's share now, or tells how long it
// would be until it can be had.
func (g *governor) try(ctx context.Context, p Priority, c call) (wait time.Duration, err error) {
	all, err := c.demands(p)
	if err != nil {
		return 0, err
	}
	return g.queue.Try(ctx, all...)
}

// refused tells all gateways that Slack refused a call for the rate: nobody
// makes such calls in that workspace for as long as it said. It does not say
// which of its limits it was, so all are taken to be used up. May be called
// twice.
func (g *governor) refused(ctx context.Context, c call, after time.Duration) error {
	all, err := c.demands(Settling)
	if err != nil {
		return err
	}
	block := min(max(after, time.Second), maxBlock)
	for i, d := range all {
		r := session.Rate{Limit: d.Limit, Window: d.Window}
		if i == len(all)-1 { // the method's
			r.Block = block
		}
		if err := g.quota.Tell(ctx, d.Account, r); err != nil {
			return fmt.Errorf("learn slack's rate: %w", err)
		}
	}
	return nil
}

// demands are what a call uses up: of the channel, if it posts there, and then
// of the method.
func (c call) demands(p Priority) ([]session.Demand, error) {
	calls, known := perMinute[c.method]
	if p < 0 || p >= priorities || !known {
		return nil, fmt.Errorf("slack: no call of %q has priority %d", c.method, p)
	}
	method := demand(c.team+"."+c.method, calls/burst, refill, held[p])
	if c.method != "chat.postMessage" || c.channel == "" {
		return []session.Demand{method}, nil
	}
	return []session.Demand{demand(c.team+"."+c.channel, channelBurst, channelRefill, held[p]), method}, nil
}

// demand is for one call. The limit is part of the account's name, because an
// account keeps the one that it began with: a release with another has its own.
func demand(account string, limit int64, window time.Duration, share float64) session.Demand {
	return session.Demand{
		Account: fmt.Sprintf("slack.%s.%d", account, limit),
		Allowance: session.Allowance{
			Need: [2]int64{1, 0}, Limit: [2]int64{limit, 1}, Window: window, Share: share,
		},
	}
}
