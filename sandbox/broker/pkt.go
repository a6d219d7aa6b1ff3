package broker

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Git's pkt-lines: four hexadecimal digits that count themselves and what
// follows. "0000" is a flush. Source: gitprotocol-common and gitprotocol-pack.
const (
	// maxHead bounds what stands before the pack: hundreds of refs.
	maxHead = 64 << 10
	// maxBand is the most that a packet of side-band-64k carries.
	maxBand = 65515
)

var errHead = errors.New("push is malformed")

// update is one ref that a push wants to change.
type update struct{ old, new, ref string }

// deletes: the new object is the one that does not exist.
func (u update) deletes() bool { return strings.Trim(u.new, "0") == "" }

// pushHead is what stands before the pack.
type pushHead struct {
	// shallow holds the commits at which the client's history is cut off.
	shallow []string
	updates []update
	caps    []string
}

var (
	updateLine  = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) ([^\x00-\x20\x7f]+)$`)
	shallowLine = regexp.MustCompile(`^shallow ([0-9a-f]{40}|[0-9a-f]{64})$`)
	capability  = regexp.MustCompile(`^[!-~]+$`)
)

// readPushHead reads up to and including the flush before the pack. Push
// options and certificates are part of no head that it accepts.
func readPushHead(r io.Reader) (pushHead, error) {
	r = io.LimitReader(r, maxHead)
	var h pushHead
	for {
		line, flush, err := readPkt(r)
		if err != nil {
			return pushHead{}, err
		}
		if flush {
			return h, nil
		}
		if err := h.add(strings.TrimSuffix(line, "\n")); err != nil {
			return pushHead{}, err
		}
	}
}

// readPkt returns one line, or that there was a flush.
func readPkt(r io.Reader) (line string, flush bool, err error) {
	var digits [4]byte
	if _, err := io.ReadFull(r, digits[:]); err != nil {
		return "", false, headCut(err)
	}
	var size [2]byte
	if _, err := hex.Decode(size[:], digits[:]); err != nil {
		return "", false, fmt.Errorf("%w: no packet length", errHead)
	}
	n := int(size[0])<<8 | int(size[1])
	if n == 0 {
		return "", true, nil
	}
	if n <= len(digits) {
		return "", false, fmt.Errorf("%w: packet of length %d", errHead, n)
	}
	body := make([]byte, n-len(digits))
	if _, err := io.ReadFull(r, body); err != nil {
		return "", false, headCut(err)
	}
	return string(body), false, nil
}

// headCut tells a head that ends too early, or is too long for us, from a
// connection that failed.
func headCut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it has no end within %d bytes", errHead, maxHead)
	}
	return fmt.Errorf("read push: %w", err)
}

func (h *pushHead) add(line string) error {
	if m := shallowLine.FindStringSubmatch(line); m != nil && len(h.updates) == 0 {
		h.shallow = append(h.shallow, m[1])
		return nil
	}
	if len(h.updates) == 0 {
		command, caps, _ := strings.Cut(line, "\x00")
		h.caps = strings.Fields(caps)
		line = command
	}
	m := updateLine.FindStringSubmatch(line)
	if m == nil || len(m[1]) != len(m[2]) {
		return fmt.Errorf("%w: neither a ref nor a shallow commit", errHead)
	}
	for _, c := range h.caps {
		if !capability.MatchString(c) {
			return fmt.Errorf("%w: capability", errHead)
		}
	}
	h.updates = append(h.updates, update{m[1], m[2], m[3]})
	return nil
}

func (h pushHead) can(name string) bool {
	for _, c := range h.caps {
		if n, _, _ := strings.Cut(c, "="); n == name {
			return true
		}
	}
	return false
}

// String writes the head anew: the code host reads what was understood here,
// and nothing that was overlooked.
func (h pushHead) String() string {
	var b strings.Builder
	for _, oid := range h.shallow {
		b.WriteString(pkt("shallow " + oid))
	}
	for i, u := range h.updates {
		line := u.old + " " + u.new + " " + u.ref
		if i == 0 {
			line += "\x00 " + strings.Join(h.caps, " ")
		}
		b.WriteString(pkt(line))
	}
	return b.String() + "0000"
}

func pkt(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

// rejection is the answer to a push that takes none of its refs, in the form
// that the client asked for, so that git prints the reason beside each ref.
func (h pushHead) rejection(reason string) string {
	report := h.report(reason)
	if !h.can("side-band-64k") {
		return report
	}
	out := pkt("\x02ship: " + reason + "\n")
	for len(report) > 0 {
		n := min(len(report), maxBand)
		out += pkt("\x01" + report[:n])
		report = report[n:]
	}
	return out + "0000"
}

func (h pushHead) report(reason string) string {
	if !h.can("report-status") && !h.can("report-status-v2") {
		return ""
	}
	var b strings.Builder
	b.WriteString(pkt("unpack ok\n"))
	for _, u := range h.updates {
		b.WriteString(pkt("ng " + u.ref + " " + reason + "\n"))
	}
	return b.String() + "0000"
}
