package slack

import "slices"

// Scope is something that the bot's token has to be allowed.
type Scope struct {
	Name string
	// Without says what is lacking where it is not granted.
	Without string
	// Needed: nothing works without it.
	Needed bool
}

// Scopes are those that the manifest asks for, sorted by name.
func Scopes() []Scope {
	return []Scope{
		{"app_mentions:read", "Slack does not tell ship that it is mentioned", true},
		{"assistant:write", "Slack does not show ship as an agent", false},
		{"channels:history", "ship cannot read back threads in public channels, so it might say something twice", true},
		{"channels:read", "ship does not know public channels by their names", false},
		{"chat:write", "ship cannot say anything", true},
		{"commands", "there is neither /ship nor the shortcut Ship this", false},
		{"files:read", "ship cannot look at files that people attach", false},
		{"groups:history", "ship does not work in private channels", false},
		{"groups:read", "ship does not know private channels by their names", false},
		{"im:history", "ship does not hear what people write to it directly", false},
		{"im:read", "ship does not find out what people wrote to it directly while it was down", false},
		{"mpim:history", "ship does not work in group messages", false},
		{"mpim:read", "ship does not find out what was said in group messages while it was down", false},
		{"reactions:write", "ship cannot react with 👀", false},
		{"usergroups:read", "ship cannot tell who is in a user group, where only some may command it", false},
		{"users:read", "ship cannot tell who asks, so it works for nobody", true},
		{"users:read.email", "ship finds nobody on GitHub by their e-mail address", false},
	}
}

// LackingScopes are those that are not among the granted ones.
func LackingScopes(granted []string) []Scope {
	return slices.DeleteFunc(Scopes(), func(s Scope) bool { return slices.Contains(granted, s.Name) })
}

func scopeNames() []string {
	var names []string
	for _, s := range Scopes() {
		names = append(names, s.Name)
	}
	return names
}
