package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	api "github.com/slack-go/slack"

	"ship/session"
)

// fates of what Slack refused.
const (
	fatePasses  = "passes"
	fateSlowly  = "passes in a minute"
	fatePeople  = "waits for people"
	fateGone    = "the thread is gone"
	fateRefused = "is refused"
)

// documented are the errors that Slack documents for the methods that are called
// to show something: chat.postMessage, chat.update, chat.delete, reactions.add,
// conversations.replies and conversations.history.
var documented = map[string]string{
	fatePasses: "internal_error fatal_error service_unavailable request_timeout update_failed streaming_state_conflict " +
		"team_added_to_org org_login_required external_channel_migrating",
	fateSlowly: "ratelimited rate_limited message_limit_exceeded",
	fatePeople: "invalid_auth not_authed token_expired not_allowed_token_type missing_scope no_permission access_denied accesslimited " +
		"ekm_access_denied enterprise_is_restricted team_access_not_granted team_not_found two_factor_setup_required messages_tab_disabled " +
		"restricted_action restricted_action_non_threadable_channel restricted_action_read_only_channel restricted_action_thread_locked " +
		"restricted_action_thread_only_channel slack_connect_canvas_sharing_blocked slack_connect_file_link_sharing_blocked slack_connect_lists_sharing_blocked",
	fateGone: "channel_not_found not_in_channel is_archived is_inactive thread_not_found cannot_reply_to_message token_revoked account_inactive team_disabled",
	fateRefused: "as_user_not_supported attachment_payload_limit_exceeded draft_already_deleted draft_already_sent draft_has_conflict draft_not_found " +
		"duplicate_channel_not_found duplicate_message_not_found invalid_blocks invalid_blocks_format invalid_metadata_format invalid_metadata_schema " +
		"markdown_text_conflict metadata_must_be_sent_from_app metadata_too_large missing_file_data msg_blocks_too_long msg_too_long no_text " +
		"too_many_attachments too_many_contact_cards block_mismatch blocked_file_type cant_broadcast_message cant_update_message edit_window_closed " +
		"file_deleted file_is_deleted file_not_found file_share_limit_reached invalid_attachments max_file_sharing_exceeded message_not_found " +
		"no_dual_broadcast_content_update posting_to_channel_denied slack_connect_blocked_file_type slack_connect_clip_sharing_blocked " +
		"slack_connect_file_upload_sharing_blocked unable_to_share_files cant_delete_message already_reacted bad_timestamp invalid_name no_access " +
		"no_item_specified not_reactable thread_locked too_many_emoji too_many_reactions invalid_cursor invalid_metadata_filter_keys invalid_ts_latest " +
		"invalid_ts_oldest list_record_comment_fetch_failed method_not_supported_for_channel_type deprecated_endpoint method_deprecated " +
		"invalid_arg_name invalid_arguments invalid_array_arg invalid_charset invalid_form_data invalid_post_type missing_post_type unknown_method",
}

func fateOf(p *session.Problem) string {
	switch {
	case p.Gone && !p.Again:
		return fateGone
	case p.Again && p.After == time.Minute:
		return fateSlowly
	case p.Again && (strings.Contains(p.Say, "Whoever runs me has to") || strings.Contains(p.Say, "An admin of the workspace has to")):
		return fatePeople
	case p.Again:
		return fatePasses
	}
	return fateRefused
}

func TestDocumentedErrors(t *testing.T) {
	t.Parallel()
	for want, codes := range documented {
		for said := range strings.FieldsSeq(codes) {
			err := fmt.Errorf("say in slack: %w", api.SlackErrorResponse{Err: said})
			p := classify(err)
			if got := fateOf(p); got != want {
				t.Errorf("%s %s, and should be what %s", said, got, want)
			}
			if p.Say == "" || !errors.Is(p, err) || strings.HasSuffix(p.Say, " ") || !strings.HasSuffix(p.Say, ".") && !strings.HasSuffix(p.Say, "name.") {
				t.Errorf("%s: %q, %v", said, p.Say, p)
			}
			if got := unsure(err); got != (said == "internal_error" || said == "fatal_error") {
				t.Errorf("%s: unsure is %v", said, got)
			}
			if want == fateRefused && !strings.Contains(p.Say, "("+said+")") {
				t.Errorf("%s: %q", said, p.Say)
			}
		}
	}
}

// TestProblems of other kinds, and what Slack would not say.
func TestProblems(t *testing.T) {
	t.Parallel()
	known := &session.Problem{Say: "Mine.", Err: errors.New("x"), Again: true, After: time.Hour}
	dial := &url.Error{Op: "Post", URL: "https://slack.com/api/chat.postMessage", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}
	read := &url.Error{Op: "Post", URL: "https://slack.com/api/chat.postMessage", Err: &net.OpError{Op: "read", Err: errors.New("reset")}}
	for name, tt := range map[string]struct {
		err    error
		want   session.Problem
		unsure bool
	}{
		"known":          {known, session.Problem{Say: "Mine.", Again: true, After: time.Hour}, true},
		"not yet":        {&notYet{wait: 7 * time.Second}, session.Problem{Say: saySlowly, Again: true, After: 7 * time.Second}, false},
		"too often":      {&api.RateLimitedError{RetryAfter: 30 * time.Second}, session.Problem{Say: saySlowly, Again: true, After: 30 * time.Second}, false},
		"503":            {api.StatusCodeError{Code: 503}, session.Problem{Say: sayTrouble, Again: true}, true},
		"500":            {api.StatusCodeError{Code: 500}, session.Problem{Say: sayTrouble, Again: true}, true},
		"404":            {api.StatusCodeError{Code: 404}, session.Problem{Say: sayUnreachable, Again: true}, false},
		"429 alone":      {api.StatusCodeError{Code: 429}, session.Problem{Say: sayUnreachable, Again: true}, false},
		"nobody there":   {dial, session.Problem{Say: sayUnreachable, Again: true}, false},
		"cut off":        {read, session.Problem{Say: sayUnreachable, Again: true}, true},
		"too late":       {context.DeadlineExceeded, session.Problem{Say: sayUnreachable, Again: true}, true},
		"not JSON":       {new(json.SyntaxError), session.Problem{Say: sayUnreachable, Again: true}, true},
		"no name":        {errNoName, session.Problem{Say: sayUnreachable, Again: true}, true},
		"no thread":      {errNoThread, session.Problem{Say: "The message that this thread began with is deleted, so I said no more there.", Gone: true}, false},
		"no code at all": {api.SlackErrorResponse{Err: "<!channel> look"}, session.Problem{Say: "Slack refused that. Whoever runs me finds the details in the log."}, false},
		"scope": {api.SlackErrorResponse{Err: "missing_scope", Needed: "reactions:write"},
			session.Problem{Say: "I lack the scope `reactions:write` in Slack. Whoever runs me has to add it to the app and install that again; I go on when that is done.", Again: true}, false},
		"odd scope": {api.SlackErrorResponse{Err: "missing_scope", Needed: "`<!here>`"},
			session.Problem{Say: "I lack a scope in Slack. Whoever runs me has to add it to the app and install that again; I go on when that is done.", Again: true}, false},
	} {
		err := fmt.Errorf("say in slack: %w", tt.err)
		got := classify(err)
		if got.Say != tt.want.Say || got.Again != tt.want.Again || got.After != tt.want.After || got.Gone != tt.want.Gone || !strings.HasPrefix(got.Error(), err.Error()) {
			t.Errorf("%s: %+v", name, got)
		}
		if tt.err != error(known) && unsure(err) != tt.unsure {
			t.Errorf("%s: unsure is %v", name, !tt.unsure)
		}
	}
	if known.Err.Error() != "x" {
		t.Error("somebody else's problem was changed")
	}
}

// TestDetails: the operator reads what Slack finds wrong, within bounds.
func TestDetails(t *testing.T) {
	t.Parallel()
	said := api.SlackErrorResponse{Err: "invalid_blocks", ResponseMetadata: api.ResponseMetadata{Messages: []string{"[ERROR] too long", strings.Repeat("x", 1000)}}}
	got := classify(fmt.Errorf("say: %w", said)).Error()
	if !strings.HasPrefix(got, "say: invalid_blocks ([ERROR] too long; xxx") || len(got) > 600 {
		t.Errorf("got %q", got)
	}
}

// TestEnded: a context that ended stays what it is.
func TestEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &work{}
	if err, ok := errors.AsType[*session.Problem](w.problem(ctx, context.Canceled)); !ok || !err.Again {
		t.Errorf("%v", err)
	}
	cancel(session.ErrLeaseLost)
	err := w.problem(ctx, &session.Problem{Err: errors.New("x"), Gone: true})
	if !errors.Is(err, session.ErrLeaseLost) || !strings.HasPrefix(err.Error(), "slack: lease lost: ") {
		t.Errorf("%v", err)
	}
}
