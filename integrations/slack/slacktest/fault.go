package slacktest

import (
	"net/http"
	"strconv"
	"time"

	"ship/bot/standin"
)

// Fault is something that goes wrong. It strikes on a method, such as
// chat.postMessage; also on "response_url", "file" for downloads, and "socket"
// for the WebSocket's handshake.
type Fault = standin.Fault

// Failing is an answer of Slack's own that nothing was done: its errors have
// status 200, and this code.
func Failing(method, code string) Fault {
	return Fault{On: method, Status: http.StatusOK, Body: string(mustJSON(object{"ok": false, "error": code}))}
}

// Limited is the answer when a method is called too often. Slack counts in
// whole seconds.
func Limited(method string, after time.Duration) Fault {
	return Fault{
		On: method, Status: http.StatusTooManyRequests, Body: `{"ok":false,"error":"ratelimited"}`,
		Header: http.Header{"Retry-After": {strconv.Itoa(seconds(after))}},
	}
}
