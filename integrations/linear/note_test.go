package linear

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/bot"
	"ship/session"
	"ship/session/memory"
)

const notificationID = "6f0f1a52-0000-4000-8000-000000000040"

func notified(action string) object {
	return event(eventNotification, action).with(object{"notification": object{
		"id": notificationID, "issueId": issueID, "actorId": ada, "actor": human(),
	}})
}

// receive has a receiver take a webhook.
func receive(t *testing.T, r *Receiver, o object) bot.Received {
	t.Helper()
	h, body := o.sign(t)
	got, err := r.Receive(t.Context(), h, body)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestNotifications: every session of the issue hears that the work was taken away,
// each as its own request.
func TestNotifications(t *testing.T) {
	t.Parallel()
	for action, ref := range map[string]string{"issueUnassignedFromYou": "", "issueStatusChanged": refStatus} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			r := receiver(t)
			if got := receive(t, r, notified(action)); got.Outcome != outcomeNoSession || got.Deliveries != nil {
				t.Errorf("before any session %+v", got)
			}
			second := thread{org, "second", issueID}
			for _, s := range []thread{{org, sessionID, issueID}, second, second, {org, "elsewhere", "other"}, {"other", "third", issueID}} {
				if err := r.rolls.add(t.Context(), s, now); err != nil {
					t.Fatal(err)
				}
			}
			want := bot.Received{Event: eventNotification, Outcome: outcomeAccepted, Delivery: deliveryID}
			for _, id := range []string{sessionID, "second"} {
				want.Deliveries = append(want.Deliveries, session.Delivery{
					Session: session.ID("ln." + id), Keep: keepKeys,
					Keys: []string{"ln:" + deliveryID + ":" + id, "ln:notification:" + notificationID + ":" + id},
					Event: session.Event{V: session.EventVersion, Kind: session.Asked, Delivery: deliveryID, Request: &session.Request{
						ID: "ln-n" + notificationID + "-" + id, Verb: session.Withdraw, By: byAda, Ref: ref, At: now,
						Thread: session.Thread{Platform: Platform, Key: org + "/" + id + "/" + issueID},
					}},
				})
			}
			if diff := cmp.Diff(want, receive(t, r, notified(action))); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWithdrawalIsTakenOnce, whatever it is called the second time, and reaches
// sessions that the first try did not.
func TestWithdrawalIsTakenOnce(t *testing.T) {
	t.Parallel()
	r, store := receiver(t), memory.New()
	receive(t, r, delegated())
	counts := func(o object, want int) {
		t.Helper()
		n := 0
		for _, d := range receive(t, r, o).Deliveries {
			receipt, err := store.Append(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			if !receipt.Duplicate {
				n++
			}
		}
		if n != want {
			t.Errorf("%d were new, not %d", n, want)
		}
	}
	counts(notified("issueUnassignedFromYou"), 1)
	counts(notified("issueUnassignedFromYou").with(object{"webhookId": "another"}), 0)
	more := delegated()
	more["agentSession"].(object)["id"] = "another"
	receive(t, r, more)
	counts(notified("issueUnassignedFromYou"), 1)
}

// TestLateWithdrawal does not end what was asked afterwards.
func TestLateWithdrawal(t *testing.T) {
	t.Parallel()
	r := receiver(t)
	for id, began := range map[string]time.Time{"before": now.Add(-time.Hour), "after": now.Add(time.Second)} {
		if err := r.rolls.add(t.Context(), thread{org, id, issueID}, began); err != nil {
			t.Fatal(err)
		}
	}
	got := receive(t, r.withClock(now.Add(6*time.Hour)), notified("issueUnassignedFromYou"))
	if len(got.Deliveries) != 1 || got.Deliveries[0].Session != "ln.before" {
		t.Errorf("got %+v", got)
	}
}

func TestOwnNotificationIsIgnored(t *testing.T) {
	t.Parallel()
	r := receiver(t)
	receive(t, r, delegated())
	own := notified("issueStatusChanged")
	own["notification"].(object)["actorId"] = appID
	if got := receive(t, r, own); got.Outcome != outcomeOwn || got.Deliveries != nil {
		t.Errorf("got %+v", got)
	}
}

// TestSomebodyWithdraws: who it was may be missing, or odd.
func TestSomebodyWithdraws(t *testing.T) {
	t.Parallel()
	r := receiver(t)
	receive(t, r, delegated())
	for _, actor := range []any{nil, "a b"} {
		odd := notified("issueUnassignedFromYou")
		odd["notification"] = odd["notification"].(object).with(object{"actorId": actor, "actor": nil})
		got := receive(t, r, odd)
		if len(got.Deliveries) != 1 || got.Deliveries[0].Event.Request.By.Login != automation {
			t.Errorf("by %v: %+v", actor, got)
		}
	}
}

// TestAccessNotes: the operator hears of what happens to the access.
func TestAccessNotes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := receiverOver(t, &memory.Vault{}, func(c *ReceiverConfig) { c.Logger = slog.New(slog.NewTextHandler(&out, nil)) })
	hears := func(o object, outcome, level string, parts ...string) {
		t.Helper()
		got := receive(t, r, o)
		if got.Outcome != outcome || got.Deliveries != nil {
			t.Errorf("got %+v", got)
		}
		line := out.String()
		out.Reset()
		for _, part := range append(parts, "level="+level, org, deliveryID) {
			if strings.Count(line, "\n") != 1 || !strings.Contains(line, part) {
				t.Errorf("%s: logged %q", part, line)
			}
		}
	}
	teams := event(eventPermission, "teamAccessChanged").with(object{"addedTeamIds": []string{"t1"}, "removedTeamIds": []string{"t2", "t3"}})
	hears(teams, outcomeAccess, "WARN", "added=1", "removed=2")
	hears(event(eventApp, "revoked"), outcomeRevoked, "ERROR")
	receive(t, r, delegated().with(object{"webhookTimestamp": now.Add(time.Second).UnixMilli()}))
	hears(event(eventApp, "revoked"), outcomeSuperseded, "WARN")
}

// TestVaultDown: then a webhook is not taken, and neither forged nor malformed,
// so that Linear sends it again.
func TestVaultDown(t *testing.T) {
	t.Parallel()
	down := errors.New("vault is down")
	for name, o := range map[string]object{
		"created": delegated(), "prompted": promptedWith(content("go on")), "revoked": event(eventApp, "revoked"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &torn{vault: &memory.Vault{}, err: down}
			h, body := o.sign(t)
			got, err := receiverOver(t, v).Receive(t.Context(), h, body)
			if !errors.Is(err, down) || errors.Is(err, bot.ErrMalformed) || errors.Is(err, bot.ErrForged) || got.Deliveries != nil {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
