package main

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"net/url"
	"sync/atomic"
)

// doorway lets one browser in: the first that comes with the key gets a cookie in
// its place. A link that stays behind, in a history or on a screen, opens nothing.
type doorway struct {
	// path is all that is behind it.
	path      string
	key, pass string
	used      atomic.Bool
	next      http.Handler
}

// doorCookie is one of ours, which no box gets to see.
const doorCookie = "ship_editor"

func newDoorway(path string, next http.Handler) *doorway {
	return &doorway{path: path, key: rand.Text(), pass: rand.Text(), next: next}
}

// query is what a link needs at its end to open the door.
func (d *doorway) query() string { return url.Values{"key": {d.key}}.Encode() }

// ServeHTTP implements http.Handler.
func (d *doorway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if pass, err := r.Cookie(doorCookie); err == nil && same(pass.Value, d.pass) {
		// Browsers do not tell ports apart: the others are of other programs of this
		// machine, and the box would be signed in to them. The editor needs none.
		r.Header.Del("Cookie")
		d.next.ServeHTTP(w, r)
		return
	}
	key := r.URL.Query().Get("key")
	switch {
	case r.Method != http.MethodGet || r.URL.Path != d.path || !same(key, d.key):
		refuse(w, "The editor is reached by the link that ship printed.")
	case d.used.Swap(true):
		refuse(w, "This link was used before. Run ship sessions attach --editor again for another.")
	default:
		// Its path keeps it from other programs of this machine in turn.
		http.SetCookie(w, &http.Cookie{Name: doorCookie, Value: d.pass, Path: d.path, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, d.path, http.StatusSeeOther)
	}
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func refuse(w http.ResponseWriter, sentence string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, sentence, http.StatusForbidden)
}
