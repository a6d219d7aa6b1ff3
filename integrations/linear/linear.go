// Package linear is ship's Linear integration. Receiver verifies and decodes
// webhooks, Tokens keeps the access to each workspace, Governor shares out what
// Linear lets one credential do, and Transport brings the latter two under
// whatever speaks with Linear's API.
//
// A session that begins here is named after the agent session it lives in,
// "ln.<agent session>", so that routing a webhook needs no look-up. What is
// opaque to the rest of ship, the keys of threads and the refs of requests, is
// made and read in key.go only.
package linear

// Platform is the name of this integration in threads, effects and metrics.
const Platform = "linear"

// Linear's own addresses, for Settings.APIURL and Settings.TokenURL.
const (
	DefaultAPIURL   = "https://api.linear.app/graphql"
	DefaultTokenURL = "https://api.linear.app/oauth/token"
)
