package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// groupPrefix begins the name of every control group that belongs to a box.
const groupPrefix = "ship-"

// gatewayGroup is the leaf that ship itself moves to under cgroup v2, where a
// group that has groups may hold no process.
const gatewayGroup = "gateway"

// cgroups are the limits of every box that this machine lets us enforce.
type cgroups struct {
	rules []rule
	// missing says what of the wanted limits is not enforced, and why.
	missing string
}

// rule is one limit: a file and its value in a group below base.
type rule struct {
	base, file, value string
	// what the rule is for, for people.
	says string
	// optional: not every kernel has the file.
	optional bool
}

// findCgroups finds out which of the limits can be enforced.
func findCgroups(limits Limits) cgroups {
	if limits == (Limits{}) {
		return cgroups{}
	}
	own, err := ownGroups()
	if err != nil {
		return cgroups{missing: "the control groups of this machine cannot be read: " + err.Error()}
	}
	var c cgroups
	var missing []string
	for _, want := range wanted(limits) {
		if err := c.add(own, want); err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", want.controller, err))
		}
	}
	c.missing = strings.Join(missing, "; ")
	return c
}

// want is one limit as both versions of control groups have it.
type want struct {
	controller, says string
	v1, v2           []rule
}

func wanted(limits Limits) []want {
	var all []want
	if limits.Memory > 0 {
		bytes := strconv.FormatInt(limits.Memory, 10)
		all = append(all, want{
			controller: "memory",
			says:       fmt.Sprintf("%d MiB of memory", limits.Memory>>20),
			v1: []rule{
				{file: "memory.limit_in_bytes", value: bytes},
				{file: "memory.memsw.limit_in_bytes", value: bytes, optional: true},
			},
			v2: []rule{
				{file: "memory.max", value: bytes},
				{file: "memory.swap.max", value: "0", optional: true},
			},
		})
	}
	if limits.PIDs > 0 {
		most := rule{file: "pids.max", value: strconv.FormatInt(limits.PIDs, 10)}
		all = append(all, want{
			controller: "pids",
			says:       fmt.Sprintf("%d processes and threads", limits.PIDs),
			v1:         []rule{most},
			v2:         []rule{most},
		})
	}
	return all
}

// add takes a limit on if a group with it can be made.
func (c *cgroups) add(own map[string]string, want want) error {
	base, rules := own[want.controller], want.v1
	if base == "" {
		var err error
		if base, err = delegated(own[""], want.controller); err != nil {
			return err
		}
		rules = want.v2
	}
	trial, err := os.MkdirTemp(base, groupPrefix+"trial-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(trial) }()
	if err := write(filepath.Join(trial, rules[0].file), rules[0].value); err != nil {
		return err
	}
	for _, r := range rules {
		r.base, r.says = base, want.says
		c.rules = append(c.rules, r)
	}
	return nil
}

// delegated returns the group of version 2 that boxes' groups can be made in.
func delegated(own, controller string) (string, error) {
	if own == "" {
		return "", errors.New("this machine has no such control group")
	}
	if filepath.Base(own) == gatewayGroup {
		own = filepath.Dir(own)
	}
	text, err := os.ReadFile(filepath.Join(own, "cgroup.controllers"))
	if err != nil {
		return "", err
	}
	if !slices.Contains(strings.Fields(string(text)), controller) {
		return "", errors.New("the controller is not delegated to ship")
	}
	control := filepath.Join(own, "cgroup.subtree_control")
	err = write(control, "+"+controller)
	if !errors.Is(err, syscall.EBUSY) {
		return own, err
	}
	if err := leave(own); err != nil {
		return "", err
	}
	return own, write(control, "+"+controller)
}

// leave moves ship out of a group, so that it may have groups.
func leave(own string) error {
	leaf := filepath.Join(own, gatewayGroup)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return write(filepath.Join(leaf, "cgroup.procs"), strconv.Itoa(os.Getpid()))
}

// String says what is enforced, in one sentence.
func (c cgroups) String() string {
	var says []string
	for _, r := range c.rules {
		if !slices.Contains(says, r.says) {
			says = append(says, r.says)
		}
	}
	text := "each box is limited to " + strings.Join(says, " and ")
	if len(says) == 0 {
		text = "boxes have no limit on memory or processes"
	}
	if c.missing != "" {
		text += " (not enforced: " + c.missing + ")"
	}
	return text
}

// names are the groups of a box, whether they exist or not.
func (c cgroups) names(id string) []string {
	var names []string
	for _, r := range c.rules {
		names = append(names, filepath.Join(r.base, groupPrefix+id))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// join makes the groups of a box and moves a process into them, with all that
// it will start.
func (c cgroups) join(names []string, pid int) error {
	for _, name := range names {
		if err := os.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("limiting the box: %w", err)
		}
		if err := c.limit(name); err != nil {
			return fmt.Errorf("limiting the box: %w", err)
		}
		if err := write(filepath.Join(name, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("limiting the box: %w", err)
		}
	}
	return nil
}

func (c cgroups) limit(name string) error {
	for _, r := range c.rules {
		if r.base != filepath.Dir(name) {
			continue
		}
		err := write(filepath.Join(name, r.file), r.value)
		if err != nil && !(r.optional && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// removeGroups ends what is left in the groups of a box and removes them.
func removeGroups(ctx context.Context, names []string) error {
	for _, name := range names {
		if !strings.HasPrefix(filepath.Base(name), groupPrefix) {
			return fmt.Errorf("%s is not the group of a box", name)
		}
		if err := removeGroup(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// removeGroup tries again for a while: the kernel lets go of a group some time
// after its last process.
func removeGroup(ctx context.Context, name string) error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		err := os.Remove(name)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return err
		}
		if err := killGroup(name); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func killGroup(name string) error {
	text, err := os.ReadFile(filepath.Join(name, "cgroup.procs"))
	if err != nil {
		return err
	}
	for line := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil || pid <= 1 {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// write writes to a file of the kernel's that has to be there.
func write(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return cmp.Or(err, file.Close())
}
