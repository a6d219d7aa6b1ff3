package session

import (
	"strconv"
	"strings"
)

// branchName is unique by construction: the session's own id is in it, and how
// many pull requests it had before.
func branchName(title string, past int, id ID) string {
	slug := make([]byte, 0, 32)
	for _, c := range []byte(strings.ToLower(title)) {
		word := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if word {
			slug = append(slug, c)
		} else if len(slug) > 0 && slug[len(slug)-1] != '-' {
			slug = append(slug, '-')
		}
		if len(slug) == 32 {
			break
		}
	}
	text := strings.Trim(string(slug), "-")
	if text == "" {
		text = "work"
	}
	if past > 0 {
		text += "-" + strconv.Itoa(past+1)
	}
	return "ship/" + text + "-" + strings.ReplaceAll(string(id), ".", "-")
}

// BranchOf tells whether a branch name belongs to the session of this id.
func BranchOf(branch string, id ID) bool {
	return strings.HasPrefix(branch, "ship/") &&
		strings.HasSuffix(branch, "-"+strings.ReplaceAll(string(id), ".", "-"))
}
