package lineartest

import (
	"testing"

	"ship/graphql/linear"
	"ship/integrations/linear/lineartest/schema"
)

// TestOperations: all operations that there are, at the price that Linear asks.
func TestOperations(t *testing.T) {
	t.Parallel()
	v, err := schema.Parse("schema.graphql", linear.Schema)
	if err != nil {
		t.Fatal(err)
	}
	names, err := v.Operations(linear.Operations)
	if err != nil {
		t.Fatal(err)
	}
	known := operations()
	for _, name := range names {
		o, ok := known[name]
		if !ok {
			t.Errorf("%s is not done here", name)
			continue
		}
		delete(known, name)
		cost, err := v.Cost(o.document, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if cost != o.cost {
			t.Errorf("%s costs %v, not %v", name, cost, o.cost)
		}
		if cost > 10_000 {
			t.Errorf("%s costs %v, and Linear refuses more than 10,000", name, cost)
		}
	}
	for name := range known {
		t.Errorf("%s is no operation", name)
	}
}
