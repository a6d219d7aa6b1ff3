package broker

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const (
	zeros = "0000000000000000000000000000000000000000"
	ones  = "1111111111111111111111111111111111111111"
)

const gitCaps = "\x00 report-status-v2 side-band-64k object-format=sha1 agent=git/2.39.5"

func TestReadPushHead(t *testing.T) {
	t.Parallel()
	in := pkt("shallow "+ones+"\n") + pkt(zeros+" "+ones+" refs/heads/a"+gitCaps) + pkt(ones+" "+zeros+" refs/tags/v1\n") + "0000PACK rest"
	r := strings.NewReader(in)
	got, err := readPushHead(r)
	if err != nil {
		t.Fatal(err)
	}
	want := pushHead{
		shallow: []string{ones},
		updates: []update{{zeros, ones, "refs/heads/a"}, {ones, zeros, "refs/tags/v1"}},
		caps:    []string{"report-status-v2", "side-band-64k", "object-format=sha1", "agent=git/2.39.5"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pushHead{}, update{})); diff != "" {
		t.Error(diff)
	}
	if rest, _ := io.ReadAll(r); string(rest) != "PACK rest" {
		t.Errorf("the pack was touched: %q is left", rest)
	}
	if got.updates[0].deletes() || !got.updates[1].deletes() {
		t.Error("deletes")
	}
}

func TestReadPushHeadRefuses(t *testing.T) {
	t.Parallel()
	line := zeros + " " + ones + " refs/heads/a"
	for name, in := range map[string]string{
		"empty":              "",
		"no end":             pkt(line),
		"cut line":           "0080" + line,
		"no length":          "zzzz",
		"delimiter":          "0001",
		"length of itself":   "0004",
		"short id":           pkt("11 "+ones+" refs/heads/a") + "0000",
		"ids of two lengths": pkt(zeros+" "+ones+strings.Repeat("1", 24)+" refs/heads/a") + "0000",
		"capital id":         pkt(strings.Repeat("A", 40)+" "+ones+" refs/heads/a") + "0000",
		"no ref":             pkt(zeros+" "+ones+" ") + "0000",
		"ref with space":     pkt(line+" b") + "0000",
		"ref with line end":  pkt(line+"\nx\x00caps") + "0000",
		"second zero byte":   pkt(line+"\x00a\x00b") + "0000",
		"late zero byte":     pkt(line) + pkt(line+"\x00report-status") + "0000",
		"certificate":        pkt("push-cert\x00caps") + "0000",
		"late shallow":       pkt(line) + pkt("shallow "+ones) + "0000",
		"two line ends":      pkt(line+"\n\n") + "0000",
		"too long":           strings.Repeat(pkt(line), 2000) + "0000",
	} {
		if h, err := readPushHead(strings.NewReader(in)); !errors.Is(err, errHead) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	broken := iotest.ErrReader(io.ErrClosedPipe)
	if _, err := readPushHead(broken); errors.Is(err, errHead) || err == nil {
		t.Errorf("a broken connection: %v", err)
	}
}

func TestObjection(t *testing.T) {
	t.Parallel()
	mine := update{zeros, ones, "refs/heads/ship/fix"}
	for name, c := range map[string]struct {
		head pushHead
		want string
	}{
		"create":       {pushHead{updates: []update{mine}}, ""},
		"update":       {pushHead{updates: []update{{ones, ones, mine.ref}}}, ""},
		"main":         {pushHead{updates: []update{{ones, ones, "refs/heads/main"}}}, "this turn may push only to ship/fix"},
		"case":         {pushHead{updates: []update{{ones, ones, "refs/heads/Ship/fix"}}}, "this turn may push only to ship/fix"},
		"two":          {pushHead{updates: []update{mine, {ones, ones, "refs/heads/main"}}}, "this turn may push only to ship/fix, and nothing beside it"},
		"twice":        {pushHead{updates: []update{mine, mine}}, "this turn may push only to ship/fix, and nothing beside it"},
		"delete":       {pushHead{updates: []update{{ones, zeros, mine.ref}}}, "this turn may not delete its branch"},
		"delete, long": {pushHead{updates: []update{{ones, strings.Repeat("0", 64), mine.ref}}}, "this turn may not delete its branch"},
		"options":      {pushHead{updates: []update{mine}, caps: []string{"push-options"}}, "push options are not allowed"},
		"certificate":  {pushHead{updates: []update{mine}, caps: []string{"push-cert=nonce"}}, "signed pushes are not allowed"},
	} {
		if got := testGrant().objection(c.head); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestRejection(t *testing.T) {
	t.Parallel()
	h := pushHead{updates: []update{{zeros, ones, "refs/heads/a"}}}
	report := pkt("unpack ok\n") + pkt("ng refs/heads/a no\n") + "0000"
	for name, c := range map[string]struct {
		caps []string
		want string
	}{
		"bands":  {[]string{"report-status", "side-band-64k"}, pkt("\x02ship: no\n") + pkt("\x01"+report) + "0000"},
		"plain":  {[]string{"report-status-v2"}, report},
		"silent": {nil, ""},
	} {
		h.caps = c.caps
		if diff := cmp.Diff(c.want, h.rejection("no")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for range 1000 {
		h.updates = append(h.updates, update{zeros, ones, "refs/heads/" + strings.Repeat("b", 100)})
	}
	h.caps = []string{"report-status", "side-band-64k"}
	for rest := h.rejection("no"); rest != "0000"; {
		line, flush, err := readPkt(strings.NewReader(rest))
		if err != nil || flush || len(line) > maxBand+1 {
			t.Fatalf("packet of %d bytes, %v", len(line), err)
		}
		rest = rest[len(line)+4:]
	}
}

// What is written anew is read as the same, so the code host cannot understand
// another push than the one that was judged.
func FuzzReadPushHead(f *testing.F) {
	f.Add([]byte(pkt(zeros+" "+ones+" refs/heads/a"+gitCaps) + "0000PACK"))
	f.Add([]byte(pkt("shallow "+ones+"\n") + pkt(zeros+" "+ones+" refs/heads/a\n") + pkt(ones+" "+zeros+" refs/heads/b") + "0000"))
	f.Add([]byte("0000"))
	f.Add([]byte("0004"))
	f.Add([]byte(pkt(zeros+" "+ones+" refs/heads/a\n\x00push-options") + "0000"))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := readPushHead(strings.NewReader(string(in)))
		if err != nil {
			return
		}
		again, err := readPushHead(strings.NewReader(h.String()))
		if err != nil {
			t.Fatalf("%q: %v", h.String(), err)
		}
		if again.String() != h.String() {
			t.Fatalf("%q became %q", h.String(), again.String())
		}
		if testGrant().objection(h) == "" && strings.Count(h.String(), "refs/") != 1 && !strings.Contains(strings.Join(h.caps, " "), "refs/") {
			t.Fatalf("let through: %q", h.String())
		}
	})
}
