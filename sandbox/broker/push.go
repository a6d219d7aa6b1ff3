package broker

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxDrain of a refused push is read away: git listens to the answer only when
// it has sent everything.
const maxDrain = 256 << 20

const pushResult = "application/x-git-receive-pack-result"

// push lets a push through that changes exactly the granted branch. Of it, only
// the head is ever held in memory.
func (b *Broker) push(v *visit) error {
	switch {
	case v.r.Method != http.MethodPost:
		return refuse(http.StatusMethodNotAllowed, codeMethod, "%s is not answered here", v.r.Method)
	case v.grant.Push == "":
		return mayNotPush()
	case v.r.Header.Get("Content-Encoding") != "":
		// No git compresses it, since packs are compressed.
		return refuse(http.StatusUnsupportedMediaType, codeMalformed, "a push must not be compressed")
	}
	v.tick()
	body := &counting{r: v.body()}
	head, err := readPushHead(body)
	if errors.Is(err, errHead) {
		return refuse(http.StatusForbidden, codeMalformed, "%s; push one branch", err.Error())
	}
	if err != nil {
		return err
	}
	if len(head.updates) == 0 {
		return probe(v)
	}
	if reason := v.grant.objection(head); reason != "" {
		return b.reject(v, head, reason)
	}
	anew := head.String()
	size := v.r.ContentLength
	if size >= 0 {
		size += int64(len(anew)) - body.n
	}
	status, err := b.forward(v, errand{path: receivePack, body: io.MultiReader(strings.NewReader(anew), body), size: size})
	b.observer.Pushed(v.grant.Repo, status)
	return err
}

// counting counts what was read.
type counting struct {
	r io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// probe answers the empty push that git sends before a large one, to learn
// whether it is let in.
func probe(v *visit) error {
	return v.answer(pushResult, "")
}

// objection says why a push is not let through; empty: it is.
func (g Grant) objection(h pushHead) string {
	only := fmt.Sprintf("this turn may push only to %s", strings.TrimPrefix(g.Push, "refs/heads/"))
	switch {
	case h.can("push-options"):
		return "push options are not allowed"
	case h.can("push-cert"):
		return "signed pushes are not allowed"
	case len(h.updates) != 1:
		return only + ", and nothing beside it"
	case h.updates[0].ref != g.Push:
		return only
	case h.updates[0].deletes() && !strings.HasPrefix(g.Push, Checkpoints):
		return "this turn may not delete its branch"
	}
	return ""
}

// reject tells git no in its own words, which read better than an HTTP error.
func (b *Broker) reject(v *visit, h pushHead, reason string) error {
	if _, err := io.CopyN(io.Discard, v.body(), maxDrain); err != nil && err != io.EOF {
		return fmt.Errorf("read push: %w", err)
	}
	no := refuse(http.StatusForbidden, codePush, "%s", reason)
	no.session, no.turn = v.grant.Session, v.grant.Turn
	b.report(v.r.Context(), no)
	return v.answer(pushResult, h.rejection(reason))
}
