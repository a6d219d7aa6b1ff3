// Package linear speaks the part of Linear's GraphQL API that an agent needs.
// The schema beside it is written by hand and holds just the types in use.
//
// Inputs are written out in the operations and take scalar variables: a whole
// input object would carry each field that is not set as null, which to Linear
// means "clear it".
//
// Lists must not be nil either, but may be empty.
//
// CreateActivity and Ask take an id made by the caller, a UUID of version 4. To
// create the same id again is refused as an input error; ReadActivity tells
// whether it is there. Every other mutation may be repeated, but AddURLs may be
// refused for a link that is there.
package linear

import (
	_ "embed"

	"github.com/Khan/genqlient/graphql"
)

//go:generate go tool genqlient

// Schema is the subset of Linear's schema that the operations are generated
// from.
//
//go:embed schema.graphql
var Schema string

// Operations are the documents that are sent, as they were written.
//
//go:embed operations.graphql
var Operations string

// New returns a client for the endpoint, such as
// https://api.linear.app/graphql. The doer authenticates, with "Bearer" before
// an OAuth token, and sees the headers that tell of rate limits.
func New(doer graphql.Doer, url string) graphql.Client {
	return graphql.NewClient(url, doer)
}
