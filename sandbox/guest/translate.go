package guest

import (
	"fmt"
	"path"
	"strings"

	"ship/sandbox"
)

// place is a path of the box, and what stands for it in the file system that
// its processes see.
type place struct {
	box, outside string
}

// places are those that differ: none, unless there is no isolation.
type places []place

func newPlaces(cfg Config) (places, error) {
	var all places
	for _, pair := range append(cfg.Shown, sandbox.WorkDir+"="+cfg.Work, sandbox.RunDir+"="+cfg.Run) {
		box, outside, ok := strings.Cut(pair, "=")
		if !ok || !path.IsAbs(box) || !path.IsAbs(outside) {
			return nil, fmt.Errorf("%q is not of the form /path/in/box=/path", pair)
		}
		if box != outside {
			all = append(all, place{box, outside})
		}
	}
	return all, nil
}

// outside rewrites the paths of the box that text names into those that stand
// for them. A name that only begins or ends alike (/workshop, /home/work) stays
// as it is.
func (ps places) outside(text string) string {
	if len(ps) == 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		p, ok := ps.at(text, i)
		if !ok {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteString(p.outside)
		i += len(p.box)
	}
	return b.String()
}

// at returns the place that is named at text[i:].
func (ps places) at(text string, i int) (place, bool) {
	if text[i] != '/' || i > 0 && isName(text[i-1]) {
		return place{}, false
	}
	for _, p := range ps {
		if startsPath(text[i:], p.box) {
			return p, true
		}
	}
	return place{}, false
}

func startsPath(text, dir string) bool {
	rest, ok := strings.CutPrefix(text, dir)
	return ok && (rest == "" || rest[0] == '/' || !isName(rest[0]))
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '-' || c == '.' || c == '/' || c >= 0x80
}
