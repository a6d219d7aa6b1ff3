package opencode

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// OpenCode takes any message id that begins with "msg" and any part id that
// begins with "prt".
const (
	messagePrefix = "msg_ship_"
	partPrefix    = "prt_ship_"
)

// encodeID writes a prompt's id with letters, digits, dot and dash; every other
// byte becomes an underscore and two hexadecimal digits.
func encodeID(id string) string {
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}

var escaped = regexp.MustCompile(`_[0-9a-f]{2}`)

// decodeID is the inverse of encodeID.
func decodeID(id string) string {
	return escaped.ReplaceAllStringFunc(id, func(s string) string {
		// The pattern admits hexadecimal digits only.
		c, _ := strconv.ParseUint(s[1:], 16, 8)
		return string([]byte{byte(c)})
	})
}
