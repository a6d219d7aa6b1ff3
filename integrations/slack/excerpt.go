package slack

import (
	"fmt"
	"unicode/utf8"
)

// maxGap is for the line that says how much is left out, in bytes.
const maxGap = 64

// excerpt is a text that fits into room when it is quoted, in bytes: all of it,
// or its beginning and its end, for that is where a log says what went wrong.
// more bytes that follow upon it are not known.
func excerpt(text string, more, room int) string {
	if more > 0 {
		head := beginning(text, room-maxGap)
		return head + gap(len(text)-len(head)+more)
	}
	if beginning(text, room) == text {
		return text
	}
	half := (room - maxGap) / 2
	head, tail := beginning(text, half), end(text, half)
	return head + gap(len(text)-len(head)-len(tail)) + tail
}

func gap(left int) string { return fmt.Sprintf("\n[%d bytes are left out here]\n", left) }

// beginning is as much of a text as fits into room when it is quoted.
func beginning(text string, room int) string {
	for i, r := range text {
		if room -= quotedLen(r); room < 0 {
			return text[:i]
		}
	}
	return text
}

// end is as much of a text's end as fits into room when it is quoted.
func end(text string, room int) string {
	from := len(text)
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if room -= quotedLen(r); room < 0 {
			break
		}
		from -= size
	}
	return text[from:]
}

// quotedLen is how long a character can get in a quotation, in bytes: each break
// of a line is one with a mark behind it.
func quotedLen(r rune) int {
	switch r {
	case '\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
		return len("\n> ")
	}
	return utf8.RuneLen(r)
}
