package chaos

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"

	"ship/sandbox"
)

// dropNewest takes from a box that just woke what was written since it was last
// attached to before the pause, if Older strikes. Nobody knows when that
// was after a restart; then nothing happens.
func (p *Provider) dropNewest(ctx context.Context, box sandbox.Box, id string) error {
	p.mu.Lock()
	since := p.entered[id]
	p.mu.Unlock()
	if since.IsZero() || !p.fate(id).strikes(Older) {
		return nil
	}
	out, err := sandbox.Exec(ctx, box, sandbox.Command{
		Name: "chaos-" + rand.Text()[:12], Dir: sandbox.WorkDir,
		Args: []string{"find", sandbox.WorkDir, "-xdev", "-type", "f", "-newermt", "@" + strconv.FormatInt(since.Unix(), 10), "-delete"},
	})
	if err != nil {
		return fmt.Errorf("taking the last files from box %s: %w", id, err)
	}
	if out.ExitCode != 0 {
		return fmt.Errorf("taking the last files from box %s: exit %d: %s", id, out.ExitCode, out.Data)
	}
	p.tell(id, Older)
	return nil
}
