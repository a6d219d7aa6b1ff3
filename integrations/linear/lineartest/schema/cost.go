package schema

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// defaultPage is how many items a connection has when a query does not say.
const defaultPage = 50

// Cost is the complexity of an operation in points, by Linear's rules: a tenth
// for a property, one for an object, and what is in a connection as often as
// its page is long. See https://linear.app/developers/rate-limiting.
func (v *Validator) Cost(document, operation string) (float64, error) {
	o, err := v.operation(document, operation)
	if err != nil {
		return 0, err
	}
	tenths := v.tenths(o.SelectionSet, 1)
	return float64(tenths) / 10, nil
}

// tenths is the cost of a selection in tenths of a point. Page is how many
// items the list in it has, when it is that of a connection.
func (v *Validator) tenths(set ast.SelectionSet, page int) int {
	sum := 0
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			sum += v.field(s, page)
		case *ast.FragmentSpread:
			sum += v.tenths(s.Definition.SelectionSet, page)
		case *ast.InlineFragment:
			sum += v.tenths(s.SelectionSet, page)
		}
	}
	return sum
}

func (v *Validator) field(f *ast.Field, page int) int {
	if f.SelectionSet == nil {
		return 1
	}
	length := 1
	if strings.HasSuffix(f.Definition.Type.Name(), "Connection") {
		length = defaultPage
		if first := f.Arguments.ForName("first"); first != nil {
			if n, err := strconv.Atoi(first.Value.Raw); err == nil {
				length = n
			}
		}
	}
	times := 1
	if f.Name == "nodes" || f.Name == "edges" {
		times = page
	}
	return times * (10 + v.tenths(f.SelectionSet, length))
}
