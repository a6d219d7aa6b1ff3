package githubtest

import (
	"cmp"
	"maps"
	"slices"
)

// sorted returns issues and pull requests by their number.
func (r *repository) sorted() []*issue {
	all := slices.Collect(maps.Values(r.issues))
	slices.SortFunc(all, func(a, b *issue) int { return cmp.Compare(a.number, b.number) })
	return all
}

func (i *issue) list(inline bool) *[]*comment {
	if inline {
		return &i.inline
	}
	return &i.comments
}

// findComment finds a comment of the conversation, or of the diff.
func (r *repository) findComment(id int64, inline bool) (*issue, *comment) {
	for _, i := range r.issues {
		for _, c := range *i.list(inline) {
			if c.id == id {
				return i, c
			}
		}
	}
	return nil, nil
}

func (r *repository) removeComment(id int64, inline bool) {
	if i, _ := r.findComment(id, inline); i != nil {
		list := i.list(inline)
		*list = slices.DeleteFunc(*list, func(c *comment) bool { return c.id == id })
	}
}

func (r *repository) findCheck(id int64) *check {
	for _, c := range r.checks {
		if c.id == id {
			return c
		}
	}
	return nil
}

// react adds a reaction and says whether it is new: one of a kind per person.
func react(list *[]reaction, r reaction) (reaction, bool) {
	for _, old := range *list {
		if old.by == r.by && old.content == r.content {
			return old, false
		}
	}
	*list = append(*list, r)
	return r, true
}

// open returns the open pull requests whose head is a branch.
func (r *repository) openPulls(head *repository, branch string) []*issue {
	var out []*issue
	for _, i := range r.sorted() {
		if i.pull != nil && i.closed.IsZero() && i.pull.headRepo == head && i.pull.head == branch {
			out = append(out, i)
		}
	}
	return out
}
