// Package slack is ship's Slack integration. Its way in is Receiver, which
// verifies and decodes what Slack posts, and Socket, which fetches the same over
// connections of its own where Slack cannot reach this ship.
//
// A session that begins here is named after its thread,
// "sl.<team>.<channel>.<root message>", so that routing needs no look-up. A
// slash command is in no thread yet: see command.go. What is opaque to the rest
// of ship, the keys of threads and the refs of requests, is made and read in
// key.go only.
package slack

// Platform is the name of this integration in threads, effects and metrics.
const Platform = "slack"

// DefaultAPIURL is where Slack's own API is, for Settings.APIURL.
const DefaultAPIURL = "https://slack.com/api/"
