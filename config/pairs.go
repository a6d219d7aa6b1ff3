package config

import (
	"fmt"
	"strings"
)

// pairsLike shows how the entries of a flat table are written in a variable.
const pairsLike = "NAME=VALUE,OTHER NAME=VALUE"

// pair is one entry of a flat table.
type pair struct{ name, value string }

// readPairs reads NAME=VALUE, with commas or line breaks between. Names may hold
// spaces and even an =: the last one counts. A Problem repeats no text, since a
// value may be a secret.
func readPairs(text string) ([]pair, *Problem) {
	var list []pair
	seen := map[string]bool{}
	for _, entry := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		p := cutPair(entry)
		list = append(list, p)
		switch {
		case p.name == "" || p.value == "":
			return nil, &Problem{What: fmt.Sprintf("entry %d is not a name and a value", len(list)), Remedy: "write it like " + pairsLike}
		case seen[p.name]:
			return nil, &Problem{What: fmt.Sprintf("names %q twice", p.name), Remedy: "leave one out"}
		}
		seen[p.name] = true
	}
	if len(list) == 0 {
		return nil, &Problem{What: "holds no entry", Remedy: "write it like " + pairsLike}
	}
	return list, nil
}

// cutPair cuts an entry at its last =. Without one it has no name.
func cutPair(entry string) pair {
	i := strings.LastIndexByte(entry, '=')
	if i < 0 {
		return pair{}
	}
	return pair{name: strings.TrimSpace(entry[:i]), value: strings.TrimSpace(entry[i+1:])}
}
