package slack

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ship/bot"
)

var validSession = regexp.MustCompile(`^sl(\.[A-Za-z0-9-]{1,64}){3}$`)

func seeds(f *testing.F) {
	for _, body := range [][]byte{
		happens(calls("[repo=a/b] fix it")).json(f), happens(reply(says("<@" + us + "> stop"))).json(f),
		happens(says("hi").with(object{"channel_type": "im"})).json(f), edit("<@"+us+"> fix that", "<@"+us+"> fix it", nil).json(f),
		happens(calls("x").with(object{"team": "T2"})).with(object{"is_ext_shared_channel": true}).json(f),
		happens(object{"type": "agent_session_stopped", "channel": ch, "thread_ts": rootTS, "user": ada, "event_ts": nextTS}).json(f),
		presses(f, press(object{"action_id": "ship_choose.1", "value": "acme/widgets"})), presses(f, shortcut("U0OTHER")),
		slash("fix &lt;it&gt;"), slash("help"), []byte("ssl_check=1"), []byte("payload={"), []byte("{"),
	} {
		f.Add(body)
	}
	examples, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "webhooks", "slack", "[a-l]*.*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range examples {
		body, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
}

// sound says what is wrong with what was received.
func sound(t *testing.T, got bot.Received) {
	t.Helper()
	if got.Outcome == "" || got.Event == "" && len(got.Deliveries) > 0 || len(got.Deliveries) > 1 {
		t.Errorf("got %+v", got)
	}
	for _, d := range got.Deliveries {
		if !validSession.MatchString(string(d.Session)) || len(d.Keys) == 0 || len(d.Keys) > 2 {
			t.Errorf("session %q with keys %q", d.Session, d.Keys)
		}
		for _, k := range d.Keys {
			if len(k) < len("sl:x") || len(k) > 400 || strings.ContainsAny(k, " \n{}") {
				t.Errorf("key %q", k)
			}
		}
		q := d.Event.Request
		th, err := parseThread(q.Thread.Key)
		if err != nil || th.id() != d.Session {
			t.Errorf("thread %q: %v", q.Thread.Key, err)
		}
		if r, err := parseRef(q.Ref); err != nil || r.String() != q.Ref {
			t.Errorf("ref %q: %v", q.Ref, err)
		}
		if _, _, err := parseLogin(q.By.Login); err != nil {
			t.Error(err)
		}
		if !regexp.MustCompile(`^[A-Za-z0-9.-]+$`).MatchString(q.ID) || q.Verb == "" || q.At.IsZero() {
			t.Errorf("request %+v", q)
		}
		if len(q.Text) > maxText || len(q.Quote) > maxQuote {
			t.Errorf("%d bytes of text, %d of quotation", len(q.Text), len(q.Quote))
		}
		if next, err := root(*q, nextTS); th.pending() != (err == nil) || err == nil && !validSession.MatchString(string(next.Session)) {
			t.Errorf("handed over as %+v, %v", next, err)
		}
	}
}

func FuzzReceive(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := receiver(t).Receive(t.Context(), signed(secret, now, body), body)
		switch {
		case err == nil:
			sound(t, got)
		case !errors.Is(err, bot.ErrMalformed):
			t.Error(err)
		}
	})
}

func FuzzFrame(f *testing.F) {
	for _, o := range []object{
		envelopes("events_api", "e1", happens(calls("fix it"))), envelopes("interactive", "e2", press(object{"action_id": "ship_stop"})),
		envelopes("slash_commands", "e3", object{"team_id": team, "channel_id": ch, "user_id": ada, "text": "x", "trigger_id": "1"}),
		{"type": "hello"}, {"type": "disconnect", "reason": "warning"},
	} {
		f.Add(o.json(f))
	}
	r := newReader(slog.New(slog.DiscardHandler), func() time.Time { return now })
	f.Fuzz(func(t *testing.T, message []byte) {
		fr, err := decode[frame](message)
		if err != nil {
			return
		}
		got, err := r.fetched(t.Context(), fr)
		switch {
		case err == nil:
			sound(t, got)
			if a := acknowledge(fr, got); a.ID != fr.ID || a.Payload != nil && (a.Payload.Text == "" || !fr.Accepts) {
				t.Errorf("acknowledged %+v", a)
			}
		case !errors.Is(err, bot.ErrMalformed):
			t.Error(err)
		}
	})
}

func FuzzVerify(f *testing.F) {
	f.Add("v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", "1531420618", []byte("token=x"))
	f.Add("v0=", "", []byte{})
	f.Fuzz(func(t *testing.T, sig, stamp string, body []byte) {
		v, err := newVerifier([]string{secret, "old"})
		if err != nil {
			t.Fatal(err)
		}
		h := signed(secret, now, body)
		if err := v.verify(h, body, now); err != nil {
			t.Error(err)
		}
		if h.Get(headerSignature) == strings.ToLower(sig) {
			return
		}
		h.Set(headerSignature, sig)
		if err := v.verify(h, body, now); !errors.Is(err, bot.ErrForged) {
			t.Errorf("signature %q: %v", sig, err)
		}
		h.Set(headerTimestamp, stamp)
		if err := v.verify(h, body, now); !errors.Is(err, bot.ErrForged) {
			t.Errorf("at %q: %v", stamp, err)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"<@UBOT> fix &lt;it&gt;", "<https://a.b|c> <#C1|g> <!here> <!subteam^S1|@d>", "<@UBOT <@UBOT|x>, a", "<", "<@>", "<!>", "<|>", "<@|>", "<#>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		said := addressed(s, "UBOT")
		if len(said) > len(s) || strings.TrimSpace(said) != said {
			t.Errorf("%q became %q", s, said)
		}
		addressed(s, "")
		if got := plain(s); len(got) > 2*len(s)+8 {
			t.Errorf("%q became %q", s, got)
		}
		if !strings.ContainsAny(s, "<>&") && plain(s) != s {
			t.Errorf("%q became %q", s, plain(s))
		}
	})
}

func FuzzKeys(f *testing.F) {
	for _, s := range []string{"T1/C1/1.2", "T1/C1/c-00112233445566778899aabbccddeeff", "//", "message/1.2", "message/1.2/U1", "button/1.2/do-3/U1", "button/1.2/repo", "command/", "stop/", "T2/U1", "U1", "ship/T1/x", "1795000000.000100"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if th, err := parseThread(s); err == nil && (th.key() != s || !validSession.MatchString(string(th.id()))) {
			t.Errorf("thread %q became %q, session %q", s, th.key(), th.id())
		}
		if r, err := parseRef(s); err == nil && r.String() != s {
			t.Errorf("ref %q became %q", s, r)
		}
		if user, foreign, err := parseLogin(s); err == nil && login(user, foreign) != s {
			t.Errorf("login %q became %q of %q", s, user, foreign)
		}
		if name := teamOf(s); name != "" && !validID.MatchString(name) {
			t.Errorf("block %q of %q", s, name)
		}
		if m := moment(s); !m.IsZero() && (m.Year() < 1970 || m.Year() > 9999) {
			t.Errorf("%q is %s", s, m)
		}
	})
}
