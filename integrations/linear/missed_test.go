package linear

import (
	"testing"
	"time"

	ql "ship/graphql/linear"
	"ship/session"
)

// TestMention: Linear names the comment at the top of a thread, which need not
// be the one that mentions us.
func TestMention(t *testing.T) {
	t.Parallel()
	says := func(id, by, under string) ql.Comment {
		c := ql.Comment{Id: id, Body: id + " by " + by}
		if by != "" {
			c.User = &ql.Author{Id: by}
		}
		if under != "" {
			c.Parent = &ql.CommentReference{Id: under}
		}
		return c
	}
	for name, tt := range map[string]struct {
		comments []ql.Comment
		want     string
	}{
		"their own":          {[]ql.Comment{says("x", "bob", ""), says("c", "ada", "")}, "c by ada"},
		"an answer":          {[]ql.Comment{says("c", "ada", "top")}, "c by ada"},
		"answered by others": {[]ql.Comment{says("c", "ada", ""), says("x", "bob", "c")}, "c by ada"},
		"of somebody else":   {[]ql.Comment{says("c", "bob", "")}, ""},
		"of Linear's":        {[]ql.Comment{says("c", "", "")}, ""},
		"above the mention":  {[]ql.Comment{says("m", "ada", "c"), says("c", "ada", "")}, ""},
		"long ago":           {[]ql.Comment{says("m", "ada", "c")}, ""},
		"none":               {nil, ""},
	} {
		if got := mention(tt.comments, "c", "ada"); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRecoverNothingOfOurs: what we began, said or set ourselves asks nothing of
// us.
func TestRecoverNothingOfOurs(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	id, _ := o.Delegate(o.issue, "ship")
	o.recovers(0)
	o.says(id, ql.Action("Run", "go test ./...", ""))
	o.recovers(0)
	o.Advance(time.Millisecond) // a session that changes within the same one looks unchanged
	o.Prompt(id, "ada", "what are you doing there?")
	if d := o.recovers(1)[0]; d.Event.Request.Verb != session.Instruct || d.Event.Request.By.Login != o.PersonID("ada") {
		t.Errorf("got %+v", d)
	}
}

// TestRecoverWithoutVault: what could not be put on the roll is not taken, and
// found the next time.
func TestRecoverWithoutVault(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.Delegate(o.issue, "ada")
	o.recovery.rolls = rolls{&stolen{}}
	if found, err := o.recovery.Recover(t.Context(), now); err == nil || found != 0 || o.taken != nil {
		t.Errorf("found %d, %v", found, err)
	}
	o.recovery.rolls = rolls{o.vault}
	o.recovers(1)
}
