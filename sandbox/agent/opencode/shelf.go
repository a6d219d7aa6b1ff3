package opencode

import (
	"context"
	_ "embed"
	"fmt"

	"ship/sandbox"
)

// shelfDir is where the repository's own agent configuration lies meanwhile:
// outside the repository, and as lasting as it.
const shelfDir = sandbox.WorkDir + "/shelf"

const shelfPath = sandbox.RunDir + "/shelf.sh"

//go:embed shelf.sh
var shelfScript []byte

// Shelve moves every .opencode out of the repository, at any depth, because
// OpenCode runs the plugins that lie in it before the model is asked anything,
// whatever its settings say (upstream 49836). git is told to leave the files
// alone meanwhile, so that a commit that the agent makes does not delete them.
// A second call, or none to do, is nil.
func Shelve(ctx context.Context, box sandbox.Box) error { return shelf(ctx, box, "shelve") }

// Unshelve puts back what Shelve moved. Call it before a commit is made from
// the repository: afterwards it looks as if nothing had been moved. A file that
// the agent made in the same place stays, and a file that git changed meanwhile
// (by a merge) is as git wants it. A second call, or none to do, is nil.
func Unshelve(ctx context.Context, box sandbox.Box) error { return shelf(ctx, box, "unshelve") }

func shelf(ctx context.Context, box sandbox.Box, verb string) error {
	if err := box.Write(ctx, shelfPath, shelfScript, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", shelfPath, err)
	}
	if err := shell(ctx, box, verb, shelfPath, verb, sandbox.RepoDir, shelfDir); err != nil {
		return fmt.Errorf("%s .opencode: %w", verb, err)
	}
	return nil
}
