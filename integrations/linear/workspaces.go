package linear

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Workspaces lists those that were installed by a code and not revoked. With
// GrantClient there is one, which the token itself knows, and it is not listed.
func (t *Tokens) Workspaces(ctx context.Context) ([]string, error) {
	value, _, err := t.vault.Load(ctx, t.listName())
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	return parseList(value), nil
}

// listName is no workspace's own: an id has no underscore.
func (t *Tokens) listName() string { return t.prefix + ".all_workspaces" }

// list changes the list of workspaces.
func (t *Tokens) list(ctx context.Context, alter func([]string) []string) error {
	if !t.code {
		return nil
	}
	err := change(ctx, t.vault, t.listName(), 0, func(old []byte) ([]byte, error) {
		before := parseList(old)
		after := alter(slices.Clone(before))
		switch {
		case slices.Equal(before, after):
			return old, nil
		case len(after) == 0:
			return nil, nil
		}
		return json.Marshal(after)
	})
	if err != nil {
		return fmt.Errorf("list workspace: %w", err)
	}
	return nil
}

// parseList reads the list. It holds what a look-up would find as well, so one
// that cannot be read is begun anew.
func parseList(value []byte) []string {
	var all []string
	if json.Unmarshal(value, &all) != nil {
		return nil
	}
	return all
}

// with and without a workspace.
func with(all []string, organization string) []string {
	all = append(without(all, organization), organization)
	slices.Sort(all)
	return all
}

func without(all []string, organization string) []string {
	return slices.DeleteFunc(all, func(o string) bool { return o == organization })
}
