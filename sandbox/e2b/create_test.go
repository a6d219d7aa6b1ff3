package e2b_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/config"
	"ship/sandbox"
	"ship/sandbox/e2b"
	"ship/sandbox/e2b/e2btest"
)

// one wants exactly one box to exist, and returns it.
func (w *world) one(t *testing.T) e2btest.Box {
	t.Helper()
	boxes := w.Boxes()
	if len(boxes) != 1 {
		t.Fatalf("there are %d boxes, want one", len(boxes))
	}
	return boxes[0]
}

// TestCreateLost: a create whose answer was lost leads to one box, that works.
func TestCreateLost(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]e2btest.Fault{
		"found at once":       {{On: "create", Lost: true}},
		"found the next time": {{On: "create", Lost: true}, {On: "list", Skip: 1, Status: http.StatusServiceUnavailable}},
		"cut in the middle":   {{On: "create", Cut: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e2btest.Options{Ship: true})
			for _, fault := range faults {
				w.Inject(fault)
			}
			p := w.open(t)
			info, err := p.Create(t.Context(), spec(t))
			if err != nil {
				if !errors.Is(err, sandbox.ErrTransient) {
					t.Fatalf("Create: %v", err)
				}
				info = create(t, w.open(t))
			}
			if got := w.one(t).ID; got != info.ID || w.Calls("create") != 1 {
				t.Errorf("box %s, Create said %s, after %d calls", got, info.ID, w.Calls("create"))
			}
			if out := shell(t, attach(t, p, info.ID), "p", "echo works"); string(out.Data) != "works\n" {
				t.Errorf("it says %q", out.Data)
			}
		})
	}
}

// TestDuplicates: of several boxes of a key one stays: the one that is written
// down, else that of the newest generation.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{Ship: true})
	p := w.open(t)
	first := create(t, p)
	newer := func(o *e2btest.Order) {
		labels := map[string]string{}
		for name, value := range o.Metadata {
			labels[name] = value
		}
		labels[sandbox.LabelGeneration] = "7"
		o.Metadata = labels
	}
	// Who holds on to the second one reaches it, and is not taken for the first.
	attach(t, p, w.Copy(first.ID, newer))
	if info := create(t, p); info.ID != first.ID || w.one(t).ID != first.ID {
		t.Errorf("%s stayed, want %s", info.ID, first.ID)
	}
	second := w.Copy(first.ID, newer)
	w.vault.Lose()
	info := create(t, p)
	if info.ID != second || w.one(t).ID != second || info.Generation != 7 {
		t.Errorf("%+v stayed, want %s", info, second)
	}
	attach(t, p, second) // although its tokens were lost
}

// brokenVault can be read and not written.
type brokenVault struct{ e2b.Vault }

var errFull = errors.New("the disk is full")

func (brokenVault) Swap(context.Context, string, int64, []byte, time.Duration) (bool, error) {
	return false, errFull
}

// TestCreateUnrecorded: a box that was made and could not be written down is
// found the next time.
func TestCreateUnrecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{})
	broken := w.open(t, func(c *e2b.Config) { c.Vault = brokenVault{c.Vault} })
	if _, err := broken.Create(t.Context(), spec(t)); !errors.Is(err, errFull) || !errors.Is(err, sandbox.ErrTransient) {
		t.Errorf("Create: %v", err)
	}
	if info := create(t, w.open(t)); w.one(t).ID != info.ID || w.Calls("create") != 1 {
		t.Errorf("%s was made, %d creates", info.ID, w.Calls("create"))
	}
}

// TestOrder: nothing is left to E2B's defaults.
func TestOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{})
	p := w.open(t, func(c *e2b.Config) { c.AllowHosts = []string{"*.npmjs.org"} })
	wanted := spec(t)
	wanted.TTL, wanted.Labels = 90*time.Second+time.Millisecond, map[string]string{"team": "a&b"}
	if _, err := p.Create(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	no, timeout := false, int64(91)
	got := w.one(t).Order
	gateway := got.Metadata["ship_gateway"]
	if len(gateway) != 16 || strings.Contains(gateway, string(testKey)) {
		t.Errorf("the gateway is %q", gateway)
	}
	want := e2btest.Order{
		Template: e2btest.Template, Timeout: &timeout, Secure: true, Internet: &no,
		Network:  e2btest.Network{PublicTraffic: &no, AllowOut: []string{e2btest.Allowed, "*.npmjs.org"}, DenyOut: []string{"0.0.0.0/0"}},
		Metadata: map[string]string{"team": "a&b", "ship_session": t.Name(), "ship_generation": "1", "ship_gateway": gateway},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestStrangers: boxes of others in the same team are none of our business.
func TestStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{})
	ours, theirs := w.open(t), w.open(t, func(c *e2b.Config) {
		c.Key, c.Vault = []byte("another key of thirty-two bytes!"), &e2btest.Vault{}
	})
	info := create(t, ours)
	if infos, err := theirs.List(t.Context(), nil); err != nil || len(infos) != 0 {
		t.Errorf("List: %v, %v", infos, err)
	}
	if _, err := theirs.Attach(t.Context(), info.ID, time.Minute); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("Attach: %v", err)
	}
	if other := create(t, theirs); other.ID == info.ID {
		t.Error("two gateways without a common key share a box")
	}
}

// TestListPages: a list is whole, however it was cut into pages.
func TestListPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{PageSize: 2})
	p := w.open(t)
	var want []string
	for i := range 5 {
		wanted := spec(t)
		wanted.Key = fmt.Sprint(wanted.Key, i)
		info, err := p.Create(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, info.ID)
	}
	infos, err := p.List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, info := range infos {
		got = append(got, info.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	w.Inject(e2btest.Fault{On: "list", Skip: 1, Status: http.StatusBadGateway})
	if infos, err := p.List(t.Context(), nil); !errors.Is(err, sandbox.ErrTransient) || infos != nil {
		t.Errorf("with a page missing: %v, %v", infos, err)
	}
}

// TestLimits: too many boxes is a queue, too many requests a pause.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{Concurrent: 1, Rate: 3})
	p := w.open(t)
	info := create(t, p)
	other := spec(t)
	other.Key += "/other"
	if _, err := p.Create(t.Context(), other); !errors.Is(err, sandbox.ErrQuota) {
		t.Errorf("a second box: %v", err)
	}
	for range 4 {
		if err := p.Extend(t.Context(), info.ID, time.Now().Add(time.Second)); err != nil {
			t.Errorf("Extend: %v", err)
		}
	}
	if err := p.Destroy(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), other); err != nil {
		t.Errorf("in the place of the first: %v", err)
	}
}

// TestWrongKey: a person has to act, and is not told the key.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	w := &world{Server: e2btest.New(t, e2btest.Options{}), vault: &e2btest.Vault{}}
	p := w.open(t, func(c *e2b.Config) { c.APIKey = config.NewSecret("e2b_wrong") })
	_, err := p.Create(t.Context(), spec(t))
	for _, err := range []error{err, p.Check(t.Context())} {
		if !errors.Is(err, sandbox.ErrAuth) || strings.Contains(err.Error(), "e2b_wrong") {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestSealed: what the vault holds is of no use without the key.
func TestSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{Ship: true})
	p := w.open(t)
	info := create(t, p)
	values := w.vault.Values()
	if len(values) != 1 {
		t.Fatalf("the vault holds %d values", len(values))
	}
	for _, word := range []string{"ea_", "ta_", info.ID} {
		if strings.Contains(string(values[0]), word) {
			t.Errorf("the vault shows %q", word)
		}
	}
	connects := w.Calls("connect")
	attach(t, w.open(t), info.ID)
	if w.Calls("connect") != connects {
		t.Error("the tokens were not kept")
	}
	if err := p.Destroy(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	if left := w.vault.Values(); len(left) != 0 {
		t.Errorf("after Destroy the vault holds %d values", len(left))
	}
}
