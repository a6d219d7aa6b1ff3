package linear

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/bot"
)

// notebook keeps notes in a slice; without one, none is expected.
type notebook struct {
	t     testing.TB
	notes *[]Note
	err   error
}

func (n notebook) Note(_ context.Context, note Note) error {
	if n.notes == nil {
		n.t.Errorf("noted %+v", note)
		return nil
	}
	*n.notes = append(*n.notes, note)
	return n.err
}

func TestNotes(t *testing.T) {
	t.Parallel()
	about := func(action string) object {
		return event(eventNotification, action).with(object{"notification": object{"id": "n1", "issueId": issueID, "actorId": ada}})
	}
	onIssue := Note{Organization: org, Issue: issueID, Actor: ada, Sent: now, Keys: []string{"ln:" + deliveryID, "ln:notification:n1"}}
	of := func(n Note, k NoteKind) Note { n.Kind = k; return n }
	tests := []struct {
		body object
		want Note
	}{
		{about("issueUnassignedFromYou"), of(onIssue, Unassigned)},
		{about("issueStatusChanged"), of(onIssue, StatusChanged)},
		{event(eventApp, "revoked"), Note{
			Kind: Revoked, Organization: org, Sent: now, Keys: []string{"ln:" + deliveryID, "ln:OAuthApp:" + org + ":1794787200000"},
		}},
		{event(eventPermission, "teamAccessChanged").with(object{"addedTeamIds": []string{"t1"}, "removedTeamIds": []string{"t2"}}), Note{
			Kind: AccessChanged, Organization: org, Added: []string{"t1"}, Removed: []string{"t2"}, Sent: now,
			Keys: []string{"ln:" + deliveryID, "ln:PermissionChange:" + org + ":1794787200000"},
		}},
	}
	for _, tt := range tests {
		t.Run(string(tt.want.Kind), func(t *testing.T) {
			t.Parallel()
			h, body := tt.body.sign(t)
			want := bot.Received{Event: tt.body["type"].(string), Outcome: string(tt.want.Kind), Delivery: deliveryID}
			var notes []Note
			for _, r := range []*Receiver{receiver(t, notebook{notes: &notes}), receiver(t, nil)} {
				got, err := r.Receive(t.Context(), h, body)
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			}
			if diff := cmp.Diff([]Note{tt.want}, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			full := errors.New("notebook is full")
			_, err := receiver(t, notebook{notes: &notes, err: full}).Receive(t.Context(), h, body)
			if !errors.Is(err, full) || errors.Is(err, bot.ErrMalformed) || errors.Is(err, bot.ErrForged) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOwnNotificationIsNoNote(t *testing.T) {
	t.Parallel()
	h, body := event(eventNotification, "issueStatusChanged").
		with(object{"notification": object{"id": "n1", "issueId": issueID, "actorId": appID}}).sign(t)
	got, err := receiver(t, notebook{t: t}).Receive(t.Context(), h, body)
	if err != nil || got.Outcome != outcomeOwn {
		t.Errorf("got %+v, %v", got, err)
	}
}
