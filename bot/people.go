package bot

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ship/config"
	"ship/session"
)

// PeopleSettings say who is who: a part of the section `access` of ship.yaml.
type PeopleSettings struct {
	// People are logins on the code host by e-mail address or account elsewhere.
	People map[string]string `yaml:"people" doc:"Login on GitHub by the e-mail address or the account's id elsewhere, for those whom GitHub does not find by their address."`
	// Unmatched says what becomes of people whose login is not known.
	Unmatched string `yaml:"unmatched" default:"refuse" oneof:"refuse allow" doc:"What becomes of people elsewhere whose login on GitHub is not known. allow lets everybody command who can write to ship there, whatever they may do on GitHub."`
}

const allow = "allow"

// Validate refuses entries that nobody can be found by.
func (s PeopleSettings) Validate() error {
	return validateTable("people", s.People, func(key, login string) error {
		switch {
		case !ascii(strings.TrimPrefix(key, "people.")):
			return config.Invalid(key, "is neither an e-mail address nor an account's id", "write one of these, in plain letters")
		case !ownerName.MatchString(login):
			return config.Invalid(key, fmt.Sprintf("%q is not a login", clip(login, 60)), "write it as GitHub shows it, without the @")
		}
		return nil
	})
}

// login is what the settings say of somebody; empty if nothing. An account's id
// comes before its address, which may be given to another person.
func (s PeopleSettings) login(who Asker) string {
	email := who.Email
	if !validEmail(email) {
		email = ""
	}
	for _, name := range []string{who.ID, email} {
		for _, key := range slices.Sorted(maps.Keys(s.People)) {
			if sameASCII(name, strings.TrimSpace(key)) {
				return strings.TrimSpace(s.People[key])
			}
		}
	}
	return ""
}

// sameASCII compares names regardless of case. Beyond ASCII there are letters
// that become a plain one in the other case, and whoever can register such an
// address would be taken for somebody else.
func sameASCII(a, b string) bool { return a != "" && ascii(a) && ascii(b) && strings.EqualFold(a, b) }

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > '~' })
}

// email is what people's addresses look like, which is less than what mail
// allows: it ends up in a search on the code host.
var email = regexp.MustCompile(`^[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]{0,62}$`)

func validEmail(s string) bool { return len(s) <= 254 && email.MatchString(s) }

// person is somebody with their login, or with what to call them without one.
// The address stays behind: in the commits that they are named in, everybody
// could read it.
func (a Asker) person(login string) session.Person {
	if login == "" {
		return session.Person{Login: a.called(), Name: a.Name, Account: a.ID}
	}
	return session.Person{Login: login, Name: a.Name}
}

// stranger is somebody who got no further: told apart by account.
func (a Asker) stranger() session.Person { return session.Person{Login: a.ID, Name: a.Name} }

// called is a readable name that can be nobody's login.
func (a Asker) called() string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("`<>@[]()*_|\\", r) {
			return -1
		}
		return r
	}, legible(a.Name))
	if name = clip(strings.Join(strings.Fields(name), " "), 60); name == "" {
		name = "somebody"
	}
	return name + " on " + strings.ToUpper(a.Platform[:min(1, len(a.Platform))]) + a.Platform[min(1, len(a.Platform)):]
}

// maxPlainName is how much of a name is shown, in bytes.
const maxPlainName = 60

// PlainName is a name on one line that does nothing wherever it stands: letters,
// digits, and what names have between them.
func PlainName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), strings.ContainsRune(".-'", r):
			return r
		}
		return -1
	}, strings.ToValidUTF8(name, ""))
	return strings.Trim(Prefix(strings.Join(strings.Fields(name), " "), maxPlainName), " .-'")
}
