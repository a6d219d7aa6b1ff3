package bot

import (
	"regexp"
	"strings"
)

// takeOptions takes the groups [key=value …] off both ends of a line. A pair
// of brackets that does not begin with key= is ordinary text.
func takeOptions(line string) (c Command, rest, problem string) {
	rest = strings.TrimSpace(line)
	for problem == "" {
		group, after, ok := groupAtStart(rest)
		if !ok {
			break
		}
		rest, problem = after, c.options(group)
	}
	for problem == "" {
		group, before, ok := groupAtEnd(rest)
		if !ok {
			break
		}
		rest, problem = before, c.options(group)
	}
	return c, rest, problem
}

func groupAtStart(s string) (group, after string, ok bool) {
	end := strings.IndexByte(s, ']')
	if end < 0 || s[0] != '[' || !isGroup(s[1:end]) {
		return "", "", false
	}
	return s[1:end], strings.TrimSpace(s[end+1:]), true
}

func groupAtEnd(s string) (group, before string, ok bool) {
	begin := strings.LastIndexByte(s, '[')
	if begin < 0 || s[len(s)-1] != ']' || !isGroup(s[begin+1:len(s)-1]) {
		return "", "", false
	}
	before = strings.TrimSpace(s[:begin])
	if len(before) == begin && begin > 0 {
		return "", "", false // list[i=0] is one word
	}
	return s[begin+1 : len(s)-1], before, true
}

var firstOption = regexp.MustCompile(`^\s*[A-Za-z_-]+=`)

// plainKey is a key that can be repeated to people without harm.
var plainKey = regexp.MustCompile(`^[a-z_-]{1,20}$`)

func isGroup(s string) bool { return firstOption.MatchString(s) }

const knownOptions = "The options are `[repo=OWNER/NAME branch=NAME model=NAME]`, all of them optional."

// options sets what one group says, and returns the sentence that says what is
// wrong with it.
func (c *Command) options(group string) (problem string) {
	for _, pair := range strings.Fields(group) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return "Each option is written as name=value. " + knownOptions
		}
		if problem := c.option(strings.ToLower(key), value); problem != "" {
			return problem
		}
	}
	return ""
}

func (c *Command) option(key, value string) (problem string) {
	var field *string
	var valid bool
	switch key {
	case "repo":
		field, valid = &c.Repo, validRepo(value)
	case "branch":
		field, valid = &c.Branch, validBranch(value)
	case "model":
		field, valid = &c.Model, validModel(value)
	default:
		if plainKey.MatchString(key) {
			return "I do not know the option `" + key + "`. " + knownOptions
		}
		return "There is an option that I do not know. " + knownOptions
	}
	switch {
	case *field != "":
		return "The option `" + key + "` is given twice. " + knownOptions
	case !valid && key == "branch":
		return "The value of `branch` is no name that git allows for a branch. " + knownOptions
	case !valid:
		return "The value of `" + key + "` is not a name as it should be. " + knownOptions
	}
	*field = value
	return ""
}

var (
	modelName = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._:/@+-]{0,126}[A-Za-z0-9])?$`)
	ownerName = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})$`)
	repoName  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
)

func validModel(s string) bool { return modelName.MatchString(s) }

// validRepo: OWNER/NAME by GitHub's rules. An owner may hold an underscore:
// those of managed accounts do.
func validRepo(s string) bool {
	owner, name, ok := strings.Cut(s, "/")
	return ok && ownerName.MatchString(owner) && repoName.MatchString(name) &&
		name != "." && name != ".." && !strings.HasSuffix(strings.ToLower(name), ".git")
}

// validBranch follows git check-ref-format --branch, and leaves out @{-1} and
// the like, which name a branch only in a clone.
func validBranch(s string) bool {
	switch {
	case s == "", len(s) > 244, s == "@", s == "HEAD":
		return false
	case s[0] == '-', strings.HasSuffix(s, "."):
		return false
	case strings.Contains(s, ".."), strings.Contains(s, "@{"):
		return false
	case strings.ContainsFunc(s, forbiddenInRef):
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

func forbiddenInRef(r rune) bool {
	return r <= ' ' || r == 0x7f || r == '\uFFFD' || strings.ContainsRune(`~^:?*[\`, r)
}
