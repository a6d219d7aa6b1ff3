// Package github speaks the part of GitHub's GraphQL API that REST lacks. The
// schema beside it is written by hand and holds just the types in use.
package github

import (
	_ "embed"

	"github.com/Khan/genqlient/graphql"
)

//go:generate go tool genqlient

// Schema is the subset of GitHub's schema that the operations are checked
// against.
//
//go:embed schema.graphql
var Schema string

// NewClient returns a client for the endpoint, such as
// https://api.github.com/graphql. The doer authenticates.
func NewClient(endpoint string, doer graphql.Doer) graphql.Client {
	return graphql.NewClient(endpoint, doer)
}
