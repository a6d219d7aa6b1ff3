// Package e2btest is a stand-in for E2B: its API, its proxy, and its daemon in
// the boxes (envd), as far as ship speaks with them.
//
// It is all of our own writing, after what was measured and what E2B documents.
// The boxes are real: each has processes, files and a network of its own, made
// by bubblewrap on this machine. The daemon runs inside as the first process; a
// test binary that uses this package therefore has to be it as well:
//
//	func TestMain(m *testing.M) {
//		if len(os.Args) > 1 && os.Args[1] == e2btest.Role {
//			os.Exit(e2btest.Inside())
//		}
//		…
//	}
package e2btest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options of a Server. The zero value has no limits.
type Options struct {
	// Concurrent is how many boxes may run at once.
	Concurrent int
	// Rate is how many calls of the API are served in one second.
	Rate int
	// MaxLife is the longest timeout that is taken. Zero: an hour.
	MaxLife time.Duration
	// PageSize bounds a page of a list, whatever was asked for.
	PageSize int
	// Door serves what a box asks of AllowedURL, if it was let out to
	// there. nil: there is nothing out there.
	Door http.Handler
	// Agent: the template has a coding agent, which is the test's own program
	// under another name.
	Agent bool
	// Ship: the template has the test's own program as ship, under the name that
	// its hash gives it, so that it need not be brought in.
	Ship bool
	// Disk is how many bytes fit into /work, which then is in memory and gone
	// with a box's processes. Zero: what this machine has.
	Disk int64
}

// Key is the API key that a Server knows, and Template its only template.
const (
	Key      = "e2b_0123456789abcdef"
	Template = "ship"
	// User is the user without rights that every box has.
	User = "user"
	// Allowed is the one host outside that boxes can reach, if they are let out
	// to there, and AllowedURL where it serves. A box may not take a port that
	// would go with a name.
	Allowed    = "127.0.0.2"
	AllowedURL = "http://" + Allowed + ":8080"
)

// Server is the stand-in. Its methods may be called concurrently.
type Server struct {
	faults
	// URL is that of the API, and SandboxURL that of the proxy.
	URL, SandboxURL string

	options Options
	dir     string
	door    string
	// tools are the names in /opt/ship of what the template has.
	tools []string

	mu    sync.Mutex
	boxes map[string]*box // guarded by mu
	calls []time.Time     // guarded by mu: those of the last second
}

// New starts a server, which ends with the test together with its boxes. The
// test is skipped where no box can be made.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("the boxes of the stand-in for E2B need bubblewrap, which is not installed")
	}
	if o.MaxLife == 0 {
		o.MaxLife = time.Hour
	}
	s := &Server{options: o, dir: t.TempDir(), boxes: map[string]*box{}}
	if o.Agent {
		s.tools = append(s.tools, "opencode")
	}
	if o.Ship {
		s.tools = append(s.tools, shipName(t))
	}
	control, proxy := httptest.NewServer(s.control()), httptest.NewServer(http.HandlerFunc(s.proxy))
	s.URL, s.SandboxURL = control.URL, proxy.URL
	closeDoor := s.openDoor(t)
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		control.Close()
		closeDoor()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, b := range s.boxes {
			b.remove()
		}
	})
	return s
}

// shipName is the name of the test's own program in a box.
func shipName(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		t.Fatal(err)
	}
	return "ship-" + hex.EncodeToString(sum.Sum(nil)[:8])
}

// Advance lets time pass for all boxes.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.boxes {
		b.started, b.ends = b.started.Add(-d), b.ends.Add(-d)
	}
}

// Box is what a test may know of a box.
type Box struct {
	ID, State string
	Ends      time.Time
	Order     Order
}

// Boxes returns those that run or are paused, the oldest first.
func (s *Server) Boxes() []Box {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Box
	for _, b := range s.sorted() {
		all = append(all, Box{b.id, b.state(), b.ends, b.order})
	}
	return all
}

// Copy makes another box of the same order, as a client would have whose first
// create was lost.
func (s *Server) Copy(id string, change func(*Order)) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := s.boxes[id].order
	change(&order)
	b, err := s.make(order)
	if err != nil {
		panic(err)
	}
	return b.id
}

// Keep remembers the files of a box as they are now; Rewind gives them back to
// it, as if what was written since had been lost. The box has to be paused for
// the latter.
func (s *Server) Keep(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.boxes[id].keep()
}

// Rewind is explained at Keep.
func (s *Server) Rewind(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.boxes[id].rewind()
}

// sorted are the boxes that exist. Those whose time is over are gone. The lock
// is held.
func (s *Server) sorted() []*box {
	var all []*box
	for id, b := range s.boxes {
		if !b.paused && time.Now().After(b.ends) {
			b.remove()
			delete(s.boxes, id)
			continue
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *box) int { return a.started.Compare(b.started) })
	return all
}

// find returns a box that exists, or nil. The lock is held.
func (s *Server) find(id string) *box {
	s.sorted()
	return s.boxes[id]
}

func newID() string { return "i" + strings.ToLower(rand.Text()[:19]) }
