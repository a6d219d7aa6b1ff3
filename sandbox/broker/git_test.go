package broker

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestCloneAndPush(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"0", "1", "2"} {
		t.Run("protocol "+version, func(t *testing.T) {
			t.Parallel()
			b := newGitBench(t)
			g := b.clone(testGrant(), "protocol.version="+version)
			if got, err := os.ReadFile(filepath.Join(g.dir, "README.md")); string(got) != "hello" {
				t.Fatalf("cloned %q, %v", got, err)
			}
			if v2 := strings.Contains(b.host.requests(), "version=2"); v2 != (version == "2") {
				t.Errorf("upstream saw\n%s", b.host.requests())
			}
			g.must("switch", "-q", "-c", "ship/fix")
			for i := range 2 { // create, then update
				g.commit("a", fmt.Sprint(i))
				g.must("push", "-q", "origin", "ship/fix")
				if status := <-b.seen.pushes; status != 200 {
					t.Errorf("observed %d", status)
				}
				head := strings.TrimSpace(g.must("rev-parse", "HEAD"))
				if refs := b.host.refs("Octo/Widgets"); !strings.Contains(refs, "refs/heads/ship/fix "+head) {
					t.Errorf("after push %d: %s", i, refs)
				}
			}
			g.must("commit", "-q", "--amend", "-m", "rewritten")
			g.must("push", "-q", "--force", "origin", "ship/fix")
			g.must("fetch", "-q", "origin")
			g.must("push", "-q", "origin", "ship/fix") // nothing to do
		})
	}
}

// A clone that knows only the newest commit pushes too.
func TestPushFromShallowClone(t *testing.T) {
	t.Parallel()
	b := newGitBench(t)
	full := b.clone(testGrant())
	full.must("switch", "-q", "-c", "ship/fix")
	full.commit("a", "1")
	full.must("push", "-q", "origin", "ship/fix")
	g := git{t, t.TempDir(), full.config}
	g.must("clone", "-q", "--depth=1", "--branch=ship/fix", b.remote("Octo/Widgets"), g.dir)
	g.commit("b", "2")
	g.must("push", "-q", "origin", "ship/fix")
	head := strings.TrimSpace(g.must("rev-parse", "HEAD"))
	if refs := b.host.refs("Octo/Widgets"); !strings.Contains(refs, head) {
		t.Error(refs)
	}
}

func TestPushesThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newGitBench(t)
	g := b.clone(testGrant())
	g.must("switch", "-q", "-c", "ship/fix")
	g.commit("a", "1")
	g.must("push", "-q", "origin", "ship/fix")
	g.must("switch", "-q", "-c", "other")
	g.commit("b", "2")
	g.must("tag", "v1")
	g.must("tag", "-a", "-m", "v2", "v2")
	before := b.host.refs("Octo/Widgets")
	only := "this turn may push only to ship/fix"
	for name, c := range map[string]struct {
		args string
		want string
	}{
		"main":             {"HEAD:main", only},
		"main by force":    {"+HEAD~1:refs/heads/main", only},
		"another branch":   {"other", only},
		"tag":              {"v1", only},
		"annotated tag":    {"v2", only},
		"branch as tag":    {"HEAD:refs/tags/ship/fix", only},
		"two refs":         {"HEAD:ship/fix HEAD:main", only + ", and nothing beside it"},
		"two, atomic":      {"--atomic HEAD:ship/fix HEAD:main", only + ", and nothing beside it"},
		"delete":           {"--delete ship/fix", "this turn may not delete its branch"},
		"delete main":      {"origin :main", only},
		"mirror":           {"--mirror", only + ", and nothing beside it"},
		"all":              {"--all", only}, // the others are up to date
		"follow tags":      {"--follow-tags HEAD:ship/fix", only + ", and nothing beside it"},
		"branch's own ref": {"HEAD:refs/ship/fix", only},
		"below the branch": {"HEAD:refs/heads/ship/fix/more", only},
	} {
		args := strings.Fields(c.args)
		if !strings.HasPrefix(c.args, "origin") {
			args = append([]string{"origin"}, args...)
		}
		out, err := g.run(append([]string{"push"}, args...)...)
		if err == nil || !strings.Contains(out, "remote: ship: "+c.want) || !strings.Contains(out, "[remote rejected]") || !strings.Contains(out, "("+c.want+")") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if after := b.host.refs("Octo/Widgets"); after != before {
		t.Errorf("refs were\n%s and are\n%s", before, after)
	}
	if strings.Count(b.host.requests(), "POST /Octo/Widgets.git/git-receive-pack") != 1 {
		t.Errorf("a refused push went upstream:\n%s", b.host.requests())
	}
}

// TestCheckpoint: a turn that may push its checkpoint may remove it as well, and
// push nothing else.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	b := newGitBench(t)
	grant := testGrant()
	grant.Push = Checkpoints + "gh.1.2"
	g := b.clone(grant)
	g.commit("a", "1")
	g.must("push", "-q", "--force", "origin", "HEAD:"+grant.Push)
	head := strings.TrimSpace(g.must("rev-parse", "HEAD"))
	if refs := b.host.refs("Octo/Widgets"); !strings.Contains(refs, grant.Push+" "+head) {
		t.Errorf("after the push: %s", refs)
	}
	for _, ref := range []string{"HEAD:ship/fix", "HEAD:refs/heads/gh.1.2", "HEAD:" + Checkpoints + "gh.1.3", "HEAD:" + grant.Push + "/more", ":main"} {
		if out, err := g.run("push", "origin", ref); err == nil || !strings.Contains(out, "this turn may push only to "+grant.Push) {
			t.Errorf("%s: %v\n%s", ref, err, out)
		}
	}
	g.must("push", "-q", "origin", ":"+grant.Push)
	if refs := b.host.refs("Octo/Widgets"); strings.Contains(refs, Checkpoints) {
		t.Errorf("after it was removed: %s", refs)
	}
}

func TestTurnWithoutPush(t *testing.T) {
	t.Parallel()
	b := newGitBench(t)
	grant := testGrant()
	grant.Push = ""
	g := b.clone(grant)
	g.commit("a", "1")
	if out, err := g.run("push", "origin", "HEAD:ship/fix"); err == nil || !strings.Contains(out, "remote: ship: this turn may not push") {
		t.Errorf("%v\n%s", err, out)
	}
	resp := b.do(grant, "POST", "/broker/git/octo/widgets.git/git-receive-pack", "0000")
	if resp.StatusCode != 403 {
		t.Errorf("directly: %d", resp.StatusCode)
	}
}

func TestGitTells(t *testing.T) {
	t.Parallel()
	b := newGitBench(t)
	expired, none := testGrant(), testGrant()
	expired.Expires = time.Now().Add(-time.Second)
	none.Repo = ""
	ended := testGrant()
	ended.Turn = "over"
	if err := b.broker.End(t.Context(), ended.Session, ended.Turn); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ token, repo, want string }{
		"another repository": {b.token(testGrant()), "octo/secrets", "this turn may reach Octo/Widgets only; submodules in other repositories cannot be fetched"},
		"no repository":      {b.token(none), "octo/widgets", "this turn has no repository"},
		"expired":            {b.token(expired), "octo/widgets", "the time of this turn is over"},
		"forged":             {"ship1.e30.AAAA", "octo/widgets", "the token of this turn is missing or not valid"},
		"ended":              {b.token(ended), "octo/widgets", "this turn has ended"},
	} {
		g := git{t, t.TempDir(), []string{"http.extraHeader=Authorization: Bearer " + c.token}}
		out, err := g.run("clone", b.remote(c.repo), g.dir)
		if err == nil || !strings.Contains(out, "remote: ship: "+c.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if got := b.host.requests(); got != "" {
		t.Errorf("upstream saw\n%s", got)
	}
}

func TestPathTricks(t *testing.T) {
	t.Parallel()
	b := newGitBench(t)
	const query = "?service=git-upload-pack"
	for _, path := range []string{
		"octo/widgets.git/../secrets.git/info/refs" + query, "octo/widgets.git/..%2fsecrets.git/info/refs" + query,
		"octo/widgets.git/%2e%2e/secrets.git/info/refs" + query, "octo/widgets.git/%2E%2E/secrets.git/info/refs" + query,
		"octo%2fsecrets.git/info/refs" + query, "octo/%73ecrets.git/info/refs" + query, "octo//widgets.git/info/refs" + query,
		"/octo/widgets.git/info/refs" + query, "octo/widgets.git//info/refs" + query, "octo/./widgets.git/info/refs" + query,
		"octo/widgets.git/info/refs/" + query, "octo/widgets.git/./info/refs" + query, "octo/widgets/info/refs" + query,
		"octo/secrets.git/octo/widgets.git/info/refs" + query, "octo/widgets.git.git/info/refs" + query, "octo/widgets.git" + query,
		"octo/widgets.git/info/refs", "octo/widgets.git/info/refs?service=git-upload-archive", "octo/widgets.git/HEAD",
		"octo/widgets.git/info/refs?service=git-upload-pack&service=git-receive-pack", "octo/widgets.git/objects/info/packs",
		"octo/widgets.git/info/refs?x=1&service=git-upload-pack", "octo/widgets.git/info/lfs/objects/batch", "octo/../octo/widgets.git/info/refs" + query,
		"octo/widgets.git;x/info/refs" + query, "octo/widgets.git/git-upload-pack", "\u212aocto/widgets.git/info/refs" + query, "octo\\widgets.git/info/refs" + query,
	} {
		resp := b.do(testGrant(), "GET", "/broker/git/"+path, "")
		if resp.StatusCode < 400 || resp.StatusCode >= 500 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	for _, path := range []string{"info/refs" + query, "git-upload-archive", "info/lfs/objects/batch", "HEAD"} {
		if resp := b.do(testGrant(), "POST", "/broker/git/octo/widgets.git/"+path, "0000"); resp.StatusCode < 400 {
			t.Errorf("POST %s: %d", path, resp.StatusCode)
		}
	}
	if got := b.host.requests(); got != "" {
		t.Errorf("upstream saw\n%s", got)
	}
	lfs := b.do(testGrant(), "POST", "/broker/git/octo/widgets.git/info/lfs/objects/batch", "{}")
	if got := text(t, lfs); !strings.Contains(got, "Git LFS is not available") {
		t.Errorf("LFS: %s", got)
	}
	// The same way without a trick is open.
	if resp := b.do(testGrant(), "GET", "/broker/git/OCTO/widgets.git/info/refs"+query, ""); resp.StatusCode != 200 {
		t.Errorf("without a trick: %d", resp.StatusCode)
	}
}

func TestPushesThatNoGitSends(t *testing.T) {
	t.Parallel()
	b := newGitBench(t)
	line := pkt(zeros + " " + ones + " refs/heads/ship/fix" + gitCaps)
	for name, body := range map[string]string{
		"empty": "", "no packet": "hello", "no end": line, "too long": strings.Repeat(line, 2000),
		"certificate": pkt("push-cert\x00"+"report-status\n") + line + "0000",
	} {
		if resp := b.do(testGrant(), "POST", "/broker/git/octo/widgets.git/git-receive-pack", body); resp.StatusCode != 403 {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text(t, resp))
		}
	}
	options := pkt(zeros+" "+ones+" refs/heads/ship/fix"+gitCaps+" push-options") + "0000" + pkt("ci.skip") + "0000"
	resp := b.do(testGrant(), "POST", "/broker/git/octo/widgets.git/git-receive-pack", options)
	if got := text(t, resp); !strings.Contains(got, "ng refs/heads/ship/fix push options are not allowed") {
		t.Errorf("push options: %d %q", resp.StatusCode, got)
	}
	resp = b.do(testGrant(), "POST", "/broker/git/octo/widgets.git/git-receive-pack", "0000")
	if got := text(t, resp); resp.StatusCode != 200 || got != "" {
		t.Errorf("probe: %d %q", resp.StatusCode, got)
	}
	if got := b.host.requests(); got != "" {
		t.Errorf("upstream saw\n%s", got)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, line+"0000")
	z.Close()
	for path, want := range map[string]int{"git-receive-pack": 415, "git-upload-pack": 200} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", b.remote("octo/widgets")+"/"+path, bytes.NewReader(packed.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Authorization": {"Bearer " + b.token(testGrant())}, "Content-Encoding": {"gzip"}}
		resp, err := b.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("compressed %s: %d", path, resp.StatusCode)
		}
	}
}

// stub is a bench whose code host is what the test says.
func stub(t *testing.T, h http.HandlerFunc) *bench {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return newBench(t, Config{GitURL: srv.URL, Credentials: fixed{user: "u", password: password}, IdleTimeout: time.Minute})
}

const refsPath = "/broker/git/octo/widgets.git/info/refs?service=git-upload-pack"

func TestCodeHostSaysNo(t *testing.T) {
	t.Parallel()
	var strayed atomic.Bool
	for name, c := range map[string]struct {
		status, want int
		say          string
	}{
		"redirect":   {302, 502, "was it renamed or moved?"},
		"our access": {401, 502, "did not accept the access"},
		"forbidden":  {403, 403, "status 403: no [redacted] for [redacted]"},
		"missing":    {404, 404, "status 404"},
		"overloaded": {503, 503, "status 503"},
		"no content": {204, 502, "status 204"},
	} {
		b := stub(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				strayed.Store(true)
			}
			w.Header().Set("Location", "/elsewhere")
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(c.status)
			if c.status != http.StatusNoContent {
				fmt.Fprintf(w, "no %s for %s", password, strings.TrimPrefix(r.Header.Get("Authorization"), "Basic "))
			}
		})
		resp := b.do(testGrant(), "GET", refsPath, "")
		got := text(t, resp)
		if resp.StatusCode != c.want || !strings.Contains(got, c.say) || strings.Contains(got, password) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, got)
		}
		if resp.Header.Get("WWW-Authenticate") != "" || resp.Header.Get("Location") != "" {
			t.Errorf("%s: headers %v", name, resp.Header)
		}
		if strings.Contains(b.log.String(), password) {
			t.Errorf("%s: the password is in the log", name)
		}
	}
	if strayed.Load() {
		t.Error("a redirect was followed")
	}
}

func TestExcerptEndsBeforeHalfASecret(t *testing.T) {
	t.Parallel()
	in := strings.Repeat("x", 1<<10-10) + password
	if got := excerpt(strings.NewReader(in), []string{"other", password}); got != strings.Repeat("x", 1<<10-10) {
		t.Errorf("ends with %q", got[len(got)-20:])
	}
}

func TestNoCredentials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]fixed{"failed": {err: errors.New("app is suspended")}, "empty": {user: "u"}} {
		b := newBench(t, Config{GitURL: "http://127.0.0.1:1", Credentials: c})
		resp := b.do(testGrant(), "GET", refsPath, "")
		if got := text(t, resp); resp.StatusCode != 502 || got != "ship: no access to Octo/Widgets could be had just now\n" {
			t.Errorf("%s: %d %q", name, resp.StatusCode, got)
		}
	}
}

// The code host has the beginning of a push while the client still sends it.
func TestPushStreams(t *testing.T) {
	t.Parallel()
	arrived := make(chan string)
	b := stub(t, func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 1<<10)
		for {
			n, err := r.Body.Read(buf)
			if n > 0 {
				arrived <- string(buf[:n])
			}
			if err != nil {
				break
			}
		}
		fmt.Fprint(w, "done")
	})
	pr, pw := io.Pipe()
	answer := make(chan string, 1)
	token := b.token(testGrant())
	b.client.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), "POST", b.url+"/broker/git/octo/widgets.git/git-receive-pack", pr)
		if err != nil {
			answer <- err.Error()
			return
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Expect", "100-continue")
		resp, err := b.client.Do(req)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		all, _ := io.ReadAll(resp.Body)
		answer <- string(all)
	}()
	head := pkt(zeros+" "+ones+" refs/heads/ship/fix\x00 report-status\n") + "0000"
	want := pkt(zeros+" "+ones+" refs/heads/ship/fix\x00 report-status") + "0000"
	for _, piece := range []string{head, "PACK one", "two"} {
		io.WriteString(pw, piece)
		for got := ""; got != want; {
			got += <-arrived
			if len(got) > len(want) {
				t.Fatalf("arrived %q, want %q", got, want)
			}
		}
		want = map[string]string{head: "PACK one", "PACK one": "two"}[piece]
	}
	pw.Close()
	if got := <-answer; got != "done" {
		t.Errorf("answer %q", got)
	}
}

// A client that stops in the middle of a push does not hold the door open.
func TestSilentPushIsCut(t *testing.T) {
	t.Parallel()
	b := stub(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	b.broker.idle = 50 * time.Millisecond
	pr, pw := io.Pipe()
	defer pw.Close()
	go io.WriteString(pw, pkt(zeros+" "+ones+" refs/heads/ship/fix\x00 report-status")+"0000PACK")
	req, err := http.NewRequestWithContext(t.Context(), "POST", b.url+"/broker/git/octo/widgets.git/git-receive-pack", pr)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.token(testGrant()))
	resp, err := b.client.Do(req)
	if err != nil {
		return // cut before it could be told
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// Not parallel: it measures what the whole process allocates.
func TestLargePushNeedsNoMemory(t *testing.T) {
	b := newGitBench(t)
	g := b.clone(testGrant(), "core.compression=0", "pack.window=0")
	g.must("switch", "-q", "-c", "ship/fix")
	const size = 24 << 20
	g.noise("noise", size)
	g.must("add", ".")
	g.must("commit", "-q", "-m", "noise")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	g.must("push", "-q", "origin", "ship/fix")
	runtime.ReadMemStats(&after)
	head := strings.TrimSpace(g.must("rev-parse", "HEAD"))
	if refs := b.host.refs("Octo/Widgets"); !strings.Contains(refs, head) {
		t.Fatal(refs)
	}
	// All that was ever allocated, freed or not, the test's code host included.
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("a push of %d MiB allocated %d KiB", size>>20, allocated>>10)
	if allocated > size/8 {
		t.Errorf("a push of %d bytes allocated %d", size, allocated)
	}
	fresh := git{t, t.TempDir(), g.config}
	runtime.ReadMemStats(&before)
	fresh.must("clone", "-q", "--branch=ship/fix", b.remote("octo/widgets"), fresh.dir)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > size/8 {
		t.Errorf("a clone of %d bytes allocated %d", size, allocated)
	}
}
