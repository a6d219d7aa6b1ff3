package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"ship/session"
	"ship/session/memory"
)

// openDoor admits everybody.
type openDoor struct{}

func (openDoor) Perform(context.Context, session.Job) (session.Performed, error) {
	return session.Performed{Admission: &session.Admission{}}, nil
}

// TestThrottleCountsPeopleApart: one who asks too often is no other's burden,
// however alike their names are.
func TestThrottleCountsPeopleApart(t *testing.T) {
	t.Parallel()
	gate := throttle{Performer: openDoor{}, ledger: memory.New(), perMinute: 1, now: func() time.Time { return time.Unix(1e9, 0) }}
	ask := func(platform, login string) bool {
		t.Helper()
		p, err := gate.Perform(t.Context(), session.Job{Effect: session.Effect{Kind: session.Admit, Request: &session.Request{
			Thread: session.Thread{Platform: platform, Key: "t"}, By: session.Person{Login: login},
		}}})
		if err != nil {
			t.Fatalf("%s: %v", login, err)
		}
		return p.Admission.Refusal == ""
	}
	people := []string{"ada", "Ada Lövlace", "Ada Låvlace", "ada lovlace", "ada:lovlace", "ada{lovlace}", "世界", "世畍", "", strings.Repeat("a", 500)}
	for _, login := range people {
		if !ask("linear", login) {
			t.Errorf("%q pays for another", login)
		}
	}
	for _, login := range people {
		if ask("linear", login) {
			t.Errorf("%q asks without end", login)
		}
	}
	if !ask("github", "ada") {
		t.Error("a namesake on another platform pays")
	}
}

// TestThrottleLetsStop: to end work is not to ask for any. A person who takes
// many issues away at once withdraws as many.
func TestThrottleLetsStop(t *testing.T) {
	t.Parallel()
	gate := throttle{Performer: openDoor{}, ledger: memory.New(), perMinute: 1, now: func() time.Time { return time.Unix(1e9, 0) }}
	for _, tt := range []struct {
		verb session.Verb
		pass bool
	}{{session.Withdraw, true}, {session.Instruct, true}, {session.Instruct, false}, {session.Stop, true}, {session.Withdraw, true}, {session.Status, false}} {
		p, err := gate.Perform(t.Context(), session.Job{Effect: session.Effect{Kind: session.Admit, Request: &session.Request{
			Thread: session.Thread{Platform: "linear", Key: "t"}, By: session.Person{Login: "ada"}, Verb: tt.verb,
		}}})
		if err != nil || (p.Admission.Refusal == "") != tt.pass {
			t.Errorf("%s: %+v, %v", tt.verb, p.Admission, err)
		}
	}
}

func FuzzAccount(f *testing.F) {
	for _, login := range []string{"ada", "Ada L", "a:b", "", "\xff"} {
		f.Add(login)
	}
	taken := regexp.MustCompile(`^[A-Za-z0-9.:-]{1,200}$`) // by the store on Redis
	f.Fuzz(func(t *testing.T, login string) {
		r := session.Request{Thread: session.Thread{Platform: "github"}, By: session.Person{Login: login}}
		if name := account(r, time.Now().Unix()/60); !taken.MatchString(name) {
			t.Errorf("%q makes the account %q", login, name)
		}
	})
}
