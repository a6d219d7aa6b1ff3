package slack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"ship/bot"
	"ship/session"
)

// maxDetails of what Slack says about an error goes into the log, in bytes.
const maxDetails = 500

// scopeName is what the scopes look like that a token lacks.
var scopeName = regexp.MustCompile(`^[a-z.:,]{1,100}$`)

// What people read of problems that pass.
const (
	sayUnreachable = "Slack could not be reached. I keep trying."
	sayTrouble     = "Slack has trouble just now. I keep trying."
	saySlowly      = "Slack asks me to slow down. I go on in a while."
)

// problem turns whatever went wrong into what people may read, and whether it
// is worth repeating. A context that ended stays what it is: its cause says what
// to do.
func (w *work) problem(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("slack: %w: %w", context.Cause(ctx), err)
	}
	return classify(err)
}

func classify(err error) *session.Problem {
	if known, ok := errors.AsType[*session.Problem](err); ok {
		p := *known
		p.Err = err
		return &p
	}
	if wait, ok := errors.AsType[*notYet](err); ok {
		return &session.Problem{Say: saySlowly, Err: err, Again: true, After: wait.wait}
	}
	if limited, ok := errors.AsType[*api.RateLimitedError](err); ok {
		return &session.Problem{Say: saySlowly, Err: err, Again: true, After: limited.RetryAfter}
	}
	if errors.Is(err, errNoThread) {
		return &session.Problem{Say: "The message that this thread began with is deleted, so I said no more there.", Err: err, Gone: true}
	}
	if said, ok := errors.AsType[api.SlackErrorResponse](err); ok {
		p := verdict(said)
		p.Err = detailed(err)
		return p
	}
	if status, ok := errors.AsType[api.StatusCodeError](err); ok && status.Code >= http.StatusInternalServerError {
		return &session.Problem{Say: sayTrouble, Err: err, Again: true}
	}
	return &session.Problem{Say: sayUnreachable, Err: err, Again: true}
}

// limitWait is for limits that Slack does not say the length of.
const limitWait = time.Minute

// verdict is what an error of Slack's means. What people have to change is tried
// again, for they may, and the thread is still ours. Gone is only what does not
// come back.
func verdict(said api.SlackErrorResponse) *session.Problem {
	switch said.Err {
	case "internal_error", "fatal_error", "service_unavailable", "request_timeout", "update_failed", "streaming_state_conflict":
		return &session.Problem{Say: sayTrouble, Again: true}
	case "team_added_to_org", "org_login_required", "external_channel_migrating":
		return &session.Problem{Say: "Slack is moving this workspace or channel and has it closed meanwhile. I keep trying.", Again: true, Passing: true}
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return &session.Problem{Say: saySlowly, Again: true, After: limitWait}
	case "channel_not_found", "not_in_channel", "is_archived", "is_inactive":
		return &session.Problem{Say: "I cannot write in this channel any more. Check that it is not archived, and invite me to it: `/invite` and my name.", Gone: true}
	case "thread_not_found", "cannot_reply_to_message":
		return &session.Problem{Say: "I cannot answer in this thread any more.", Gone: true}
	case "token_revoked", "account_inactive", "team_disabled":
		return &session.Problem{Say: "I was removed from this workspace. Whoever runs me can install the app again.", Gone: true}
	case "missing_scope":
		return &session.Problem{Say: lackOf(said.Needed), Again: true}
	case "invalid_auth", "not_authed", "token_expired", "not_allowed_token_type":
		return &session.Problem{Say: "Slack does not accept my token. Whoever runs me has to set `slack.bot_token` anew; I go on when that is done.", Again: true}
	}
	if forbidden(said.Err) {
		return &session.Problem{Say: "Slack does not let me do that here (" + said.Err + "). An admin of the workspace has to allow it; I go on when that is done.", Again: true}
	}
	return &session.Problem{Say: "Slack refused that" + because(said.Err) + ". Whoever runs me finds the details in the log."}
}

// forbidden: rules of the workspace, or how the app is set up there, are in the
// way.
func forbidden(code string) bool {
	switch code {
	case "access_denied", "accesslimited", "app_access_restricted", "ekm_access_denied", "enterprise_is_restricted",
		"messages_tab_disabled", "no_permission", "team_access_not_granted", "team_not_found", "two_factor_setup_required",
		"restricted_action", "restricted_action_non_threadable_channel", "restricted_action_read_only_channel",
		"restricted_action_thread_locked", "restricted_action_thread_only_channel",
		"slack_connect_canvas_sharing_blocked", "slack_connect_file_link_sharing_blocked", "slack_connect_lists_sharing_blocked":
		return true
	}
	return false
}

func lackOf(scope string) string {
	what := "a scope"
	if scopeName.MatchString(scope) {
		what = "the scope `" + scope + "`"
	}
	return "I lack " + what + " in Slack. Whoever runs me has to add it to the app and install that again; I go on when that is done."
}

// because is an error code for people, if it is one.
func because(code string) string {
	if !errorCode.MatchString(code) {
		return ""
	}
	return " (" + code + ")"
}

// code is what Slack calls an error; empty: it is none of Slack's.
func code(err error) string {
	said, _ := errors.AsType[api.SlackErrorResponse](err)
	return said.Err
}

// detailed is an error with what else Slack said about it, for the operator.
func detailed(err error) error {
	said, _ := errors.AsType[api.SlackErrorResponse](err)
	more := said.ResponseMetadata.Messages
	if said.Needed != "" {
		more = append([]string{"needed: " + said.Needed}, more...)
	}
	if len(more) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, bot.Prefix(strings.Join(more, "; "), maxDetails))
}

// unsure: what failed so may have been done all the same. Slack says of two of
// its errors that they can come too late.
func unsure(err error) bool {
	if _, ok := errors.AsType[*notYet](err); ok {
		return false
	}
	if _, ok := errors.AsType[*api.RateLimitedError](err); ok {
		return false
	}
	if said, ok := errors.AsType[api.SlackErrorResponse](err); ok {
		return said.Err == "internal_error" || said.Err == "fatal_error"
	}
	if status, ok := errors.AsType[api.StatusCodeError](err); ok {
		return status.Code >= http.StatusInternalServerError
	}
	if way, ok := errors.AsType[*net.OpError](err); ok && way.Op == "dial" {
		return false
	}
	return !errors.Is(err, errNoThread)
}

// badBlocks: Slack does not take the blocks of a message.
func badBlocks(err error) bool {
	switch code(err) {
	case "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "block_mismatch":
		return true
	}
	return false
}
