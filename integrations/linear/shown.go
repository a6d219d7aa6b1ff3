package linear

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// shown is what a session in Linear shows by our doing, as far as we remember.
// It is kept as the thread's ref. Of texts there are hashes, for all that
// matters is whether they differ; what is not remembered is empty, and is shown
// again.
type shown struct {
	plan, links string
	// step that was told of last, and pull request that was put on the issue.
	step, pull string
	// spoke is when progress was last told in an activity.
	spoke time.Time
}

func (s shown) String() string {
	fields := []string{s.plan, s.links, s.step, s.pull, ""}
	if !s.spoke.IsZero() {
		fields[4] = strconv.FormatInt(s.spoke.Unix(), 36)
	}
	return strings.Join(fields, ".")
}

// parseShown reads what was kept. What cannot be read was never shown.
func parseShown(ref string) shown {
	fields := strings.Split(ref, ".")
	if len(fields) != 5 {
		return shown{}
	}
	s := shown{plan: fields[0], links: fields[1], step: fields[2], pull: fields[3]}
	if at, err := strconv.ParseInt(fields[4], 36, 64); err == nil && at > 0 {
		s.spoke = time.Unix(at, 0)
	}
	return s
}

// hash is short, for state is kept small: a collision hides a step.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
