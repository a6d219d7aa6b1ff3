package bot

import (
	"testing"

	"ship/session"
)

// TestSpendingIsOfAnAccount: where everybody may command, nobody spends as
// somebody else, or has a new day's budget, by calling themselves otherwise.
func TestSpendingIsOfAnAccount(t *testing.T) {
	t.Parallel()
	g := Gate{People: PeopleSettings{Unmatched: allow}}
	payer := func(who Asker) string {
		t.Helper()
		p, err := g.Pass(t.Context(), who, "", "")
		if err != nil {
			t.Fatal(err)
		}
		return session.Request{Thread: session.Thread{Platform: who.Platform}, By: p.By}.Payer()
	}
	renamed, twin := ada, ada
	renamed.Name = "The Boss"
	twin.ID = "9a1f0c3e-0000-4000-8000-000000000002"
	if payer(ada) != payer(renamed) {
		t.Errorf("with another name, %s is %s", payer(ada), payer(renamed))
	}
	if payer(ada) == payer(twin) {
		t.Errorf("two people of one name are both %s", payer(ada))
	}
}
