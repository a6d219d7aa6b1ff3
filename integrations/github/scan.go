package github

import (
	"encoding/binary"
	"math/bits"
)

// maxDepth of nested values, the same as encoding/json's: the scanner recurses.
const maxDepth = 10000

// members checks that a body is JSON, all of it, and visits the members of the
// object that it is: their names as written, and their values. One pass does
// both, which is what keeps a webhook cheap. It reports whether the body is
// JSON; what was visited before is void if not.
func members(body []byte, visit func(name, value []byte)) bool {
	s := scanner{b: body}
	s.space()
	if !s.at('{') {
		ok := s.value(0)
		s.space()
		return ok && s.i == len(s.b)
	}
	ok := s.object(1, visit)
	s.space()
	return ok && s.i == len(s.b)
}

// member returns the value of an object's member; nil when there is none. The
// object was checked before.
func member(object []byte, name string) []byte {
	s := scanner{b: object}
	var found []byte
	if s.at('{') {
		s.object(1, func(n, value []byte) {
			if string(n) == name {
				found = value
				s.i = len(s.b) // seen enough
			}
		})
	}
	return found
}

// scanner walks over JSON. Each method begins at the first byte of what it is
// named after, and ends behind it.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) at(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }

// take steps over a byte if it is there.
func (s *scanner) take(c byte) bool {
	if s.at(c) {
		s.i++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\r' || s.b[s.i] == '\t') {
		s.i++
	}
}

func (s *scanner) value(depth int) bool {
	if s.i >= len(s.b) || depth > maxDepth {
		return false
	}
	switch c := s.b[s.i]; c {
	case '{':
		return s.object(depth+1, nil)
	case '[':
		return s.array(depth + 1)
	case '"':
		return s.text()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

func (s *scanner) object(depth int, visit func(name, value []byte)) bool {
	if depth > maxDepth {
		return false
	}
	s.i++
	s.space()
	if s.take('}') {
		return true
	}
	for {
		if !s.member(depth, visit) {
			return false
		}
		s.space()
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
		s.space()
	}
}

func (s *scanner) member(depth int, visit func(name, value []byte)) bool {
	name := s.i
	if !s.at('"') || !s.text() {
		return false
	}
	end := s.i
	s.space()
	if !s.take(':') {
		return false
	}
	s.space()
	value := s.i
	if !s.value(depth) {
		return false
	}
	if visit != nil {
		visit(s.b[name+1:end-1], s.b[value:s.i])
	}
	return true
}

func (s *scanner) array(depth int) bool {
	if depth > maxDepth {
		return false
	}
	s.i++
	s.space()
	if s.take(']') {
		return true
	}
	for {
		if !s.value(depth) {
			return false
		}
		s.space()
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
		s.space()
	}
}

// text steps over a string. Most of a webhook is strings, so it looks for what
// is special in them eight bytes at a time.
func (s *scanner) text() bool {
	s.i++
	for {
		s.plain()
		if s.i >= len(s.b) {
			return false
		}
		switch s.b[s.i] {
		case '"':
			s.i++
			return true
		case '\\':
			if !s.escape() {
				return false
			}
		default: // a control character
			return false
		}
	}
}

// plain steps over bytes that mean nothing in a string: up to a quote, a
// backslash or a control character.
func (s *scanner) plain() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for len(s.b)-s.i >= 8 {
		w := binary.LittleEndian.Uint64(s.b[s.i:])
		// The top bit of each byte that equals the one looked for, or is below
		// a space. A borrow may set one too many, but never below the first.
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		found := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & tops
		if found != 0 {
			s.i += bits.TrailingZeros64(found) / 8
			return
		}
		s.i += 8
	}
	for s.i < len(s.b) && s.b[s.i] != '"' && s.b[s.i] != '\\' && s.b[s.i] >= ' ' {
		s.i++
	}
}

func (s *scanner) escape() bool {
	if len(s.b)-s.i < 2 {
		return false
	}
	c := s.b[s.i+1]
	s.i += 2
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
	default:
		return false
	}
	for range 4 {
		if s.i >= len(s.b) || !hexDigit(s.b[s.i]) {
			return false
		}
		s.i++
	}
	return true
}

func hexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}
