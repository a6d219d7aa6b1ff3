package local_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/guest"
	"ship/sandbox/local"
	"ship/sandbox/preview"
)

// expires is when a box ends, as its provider says.
func expires(t *testing.T, p *local.Provider, id string) time.Time {
	t.Helper()
	infos, err := p.List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if info.ID == id {
			return info.Expires
		}
	}
	t.Fatalf("box %s is not listed", id)
	return time.Time{}
}

// TestLookingChangesNothing: a preview and a terminal work in a real box, which
// lives no longer for them, and end with it.
func TestLookingChangesNothing(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	p := open(t, local.Config{})
	info, box := create(t, p)
	before := expires(t, p, info.ID)
	if _, err := box.Spawn(t.Context(), sandbox.Command{Name: "web", Args: []string{inBox, "web", "3000"}}); err != nil {
		t.Fatal(err)
	}
	await(t, "a server that answers", func() bool { return preview.Answers(t.Context(), box, 3000) })
	links, err := preview.NewLinks("http://preview.example.net", []byte("a key of sixteen or more bytes"))
	if err != nil {
		t.Fatal(err)
	}
	link, err := links.URL(preview.Target{Session: "s", Box: info.ID, Port: 3000}, time.Now(), time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	proxy := preview.NewProxy(links, p)
	t.Cleanup(proxy.Close)
	host := httptest.NewServer(proxy)
	t.Cleanup(host.Close)
	if status, text := fetch(t, host, link+"a/b"); status != http.StatusOK || text != "in the box: /a/b" {
		t.Errorf("%d, %s", status, text)
	}
	peeked, err := p.Peek(t.Context(), info.ID)
	if err != nil {
		t.Fatal(err)
	}
	screen := inTerminal(t, peeked)
	if now := expires(t, p, info.ID); !now.Equal(before) {
		t.Errorf("the box lived until %s, and now until %s", before, now)
	}
	if err := p.Destroy(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, screen); err == nil {
		t.Error("the terminal ended as if the shell had")
	}
	if status, _ := fetch(t, host, link); status != http.StatusGone {
		t.Errorf("without the box: %d", status)
	}
	if _, err := p.Peek(t.Context(), info.ID); !errors.Is(err, sandbox.ErrGone) {
		t.Error(err)
	}
	if _, err := p.Peek(t.Context(), "../../etc"); !errors.Is(err, sandbox.ErrGone) {
		t.Error(err)
	}
}

func fetch(t *testing.T, host *httptest.Server, link string) (int, string) {
	t.Helper()
	response, err := host.Client().Get(host.URL + strings.TrimPrefix(link, "http://preview.example.net"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// inTerminal opens a terminal that works.
func inTerminal(t *testing.T, box sandbox.Box) io.Reader {
	t.Helper()
	client, ok := box.(*guest.Client)
	if !ok {
		t.Fatalf("a %T has no terminal", box)
	}
	term, err := client.Terminal(t.Context(), "xterm", guest.Window{Rows: 10, Columns: 40})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Close() })
	if _, err := io.WriteString(term, "test -t 1 && pwd | tr / =\n"); err != nil {
		t.Fatal(err)
	}
	screen := bufio.NewReader(term)
	for line := ""; !strings.Contains(line, "=work"); {
		if line, err = screen.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return screen
}
