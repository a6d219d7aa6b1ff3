package e2b

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"ship/sandbox"
	"ship/sandbox/guest"
)

// programDir is where a box has what ship brings in, or what its template has.
const programDir = "/opt/ship"

// program is the ship that runs as the guest. Its name in a box holds its hash:
// what is there is what we have, whether it was brought in or is part of the
// template.
type program struct {
	path, inBox string
	size        int64
}

// readProgram hashes the program at path, or the one that runs now.
func readProgram(path string) (*program, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		path = self
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the guest's program: %w", err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return nil, fmt.Errorf("the guest's program: %w", err)
	}
	return &program{path: path, size: size, inBox: programDir + "/ship-" + hex.EncodeToString(sum.Sum(nil)[:8])}, nil
}

// CheckProgram refuses a program that could not run in a box of E2B's: those
// have x86-64 processors, and not this machine's libraries.
func CheckProgram(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("the guest's program %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	if file.Machine != elf.EM_X86_64 {
		return fmt.Errorf("the guest's program %s is for %s, and boxes at E2B are x86-64: build one with GOARCH=amd64 and set sandbox.e2b.guest", path, file.Machine)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return fmt.Errorf("the guest's program %s needs this machine's libraries: build it with CGO_ENABLED=0, or set sandbox.e2b.guest", path)
		}
	}
	return nil
}

// The exit codes by which a script says what is missing.
const (
	exitNoProgram = 44
	exitNoUser    = 45
)

// layOut makes the folders of the contract and looks for the program, as root.
// None of the folders lies in one that the user could write to.
const layOut = `
id "$BOX_USER" >/dev/null 2>&1 || exit 45
mkdir -p /work /run/ship /opt/ship && chown "$BOX_USER:" /work /run/ship || exit 1
[ -x "$PROGRAM" ] || exit 44
`

// install gives what was uploaded its name at last. Twice is as once.
const install = `chmod 755 "$UPLOADED" && mv -f "$UPLOADED" "$PROGRAM"`

// startGuest starts the guest as the user. A lock that the guest holds for as
// long as it lives, and the kernel gives back, tells whether there is one. What
// an earlier guest left running has nobody who knows it, and ends. The script
// ends when the guest says that it is ready, or has ended; all output of the
// guest goes elsewhere by then.
const startGuest = `
exec 9>>/run/ship/guest.lock || exit 1
flock -n 9 || { echo running; exit 0; }
kill -s KILL -- -1 2>/dev/null
{ echo | setsid "$PROGRAM" guest -handshake -box "$BOX" -listen "tcp:0.0.0.0:$GUEST_PORT" -broker "$BROKER" 2>>/run/ship/guest.log & } | head -n 1 9>&-
`

var (
	errNoUser = errors.New("the template has no such user: set sandbox.e2b.user")
	errMute   = errors.New("the guest did not start")
)

// bringUp makes sure that a guest runs in a box that runs. Two that do so at
// the same time start one.
func (p *Provider) bringUp(ctx context.Context, box string, a access) error {
	e, err := p.envd(box, a)
	if err != nil {
		return err
	}
	env := map[string]string{"PATH": guest.DefaultPath, "PROGRAM": p.program.inBox, "BOX_USER": p.cfg.User}
	res, err := e.run(ctx, script{user: "root", text: layOut, env: env})
	if err == nil && res.exitCode == exitNoProgram {
		if err := p.program.bringIn(ctx, e, env); err != nil {
			return fmt.Errorf("bringing the guest in: %w", err)
		}
		res.exitCode = 0
	}
	if err := outcome("laying out the box", res, err); err != nil {
		return err
	}
	env["BOX"], env["BROKER"], env["GUEST_PORT"] = box, p.cfg.PublicURL, strconv.Itoa(guestPort)
	env[guest.SecretVariable] = p.guestSecret(box)
	res, err = e.run(ctx, script{user: p.cfg.User, text: startGuest, env: env})
	if err := outcome("starting the guest", res, err); err != nil {
		return err
	}
	if len(res.stdout) == 0 {
		said, _ := e.run(ctx, script{user: p.cfg.User, text: "tail -c 500 /run/ship/guest.log"})
		return fmt.Errorf("%w: it said %q", errMute, said.stdout)
	}
	return nil
}

func outcome(doing string, res result, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", doing, err)
	case res.exitCode == exitNoUser:
		return fmt.Errorf("%s: %w", doing, errNoUser)
	case res.exitCode == -1: // Another start may have ended it.
		return fmt.Errorf("%s: %s: %w", doing, res.status, sandbox.ErrTransient)
	case res.exitCode != 0:
		return fmt.Errorf("%s: exit %d: %q", doing, res.exitCode, res.stderr)
	}
	return nil
}

// bringIn uploads the program beside its place and moves it there: half of it
// is never taken for all of it.
func (pr *program) bringIn(ctx context.Context, e *envd, env map[string]string) error {
	file, err := os.Open(pr.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	env["UPLOADED"] = programDir + "/.ship-" + rand.Text()
	if err := e.upload(ctx, env["UPLOADED"], file, pr.size); err != nil {
		return err
	}
	res, err := e.run(ctx, script{user: "root", text: install, env: env})
	return outcome("installing it", res, err)
}

// guestSecret is the same for all gateways that share our key, and for no two
// boxes.
func (p *Provider) guestSecret(box string) string {
	return hex.EncodeToString(derive(p.cfg.Key, "guest "+box))
}
