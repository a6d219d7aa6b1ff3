package preview

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ours begins the names of ship's own cookies, which no box gets to see or to
// set.
const ours = "ship"

func isOurs(name string) bool { return strings.HasPrefix(strings.TrimLeft(name, "_"), ours) }

// rewrite makes a visitor's request one to the server in the box, which takes
// itself for one on localhost. Nothing that tells who the visitor is goes with
// it, nor the link.
func rewrite(r *httputil.ProxyRequest) {
	v := visitOf(r.In.Context())
	port := strconv.Itoa(v.target.Port)
	path, err := url.PathUnescape(v.rest)
	if err != nil {
		path = v.rest
	}
	r.Out.URL.Scheme, r.Out.URL.Host = "http", v.target.Box+":"+port
	r.Out.URL.Path, r.Out.URL.RawPath = path, v.rest
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	r.Out.Host = "localhost:" + port
	h := r.Out.Header
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Forwarded", "X-Real-Ip", "Referer"} {
		h.Del(name)
	}
	if origin := r.In.Header.Get("Origin"); strings.HasSuffix(origin, "://"+r.In.Host) {
		h.Set("Origin", "http://"+r.Out.Host)
	}
	h.Set("X-Forwarded-Prefix", v.prefix)
	h.Del("Cookie")
	for _, c := range r.In.Cookies() {
		if !isOurs(c.Name) {
			r.Out.AddCookie(c)
		}
	}
}

// taken are headers by which an answer would reach beyond its own preview.
var taken = []string{
	"Service-Worker-Allowed", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc",
	"Report-To", "Reporting-Endpoints", "Nel", "Expires", "Pragma", "Age",
}

// modify keeps an answer within its preview.
func modify(r *http.Response) error {
	v := visitOf(r.Request.Context())
	for _, name := range taken {
		r.Header.Del(name)
	}
	confine(r.Header)
	if to := r.Header.Get("Location"); to != "" {
		r.Header.Set("Location", v.within(to))
	}
	cookies := r.Cookies()
	r.Header.Del("Set-Cookie")
	for _, c := range cookies {
		if isOurs(c.Name) || strings.HasPrefix(c.Name, "__Host-") {
			continue
		}
		c.Domain, c.Path = "", v.prefix+"/"+strings.TrimPrefix(c.Path, "/")
		r.Header.Add("Set-Cookie", c.String())
	}
	return nil
}

// confine is what every answer on this host says. The referrer stays on this
// host, where stray needs it, and is told to nobody else.
func confine(h http.Header) {
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// within moves an address of the server's own below the link. Others stay.
func (v visit) within(to string) string {
	u, err := url.Parse(to)
	if err != nil {
		return to
	}
	self := []string{"localhost", "127.0.0.1", "::1"}
	if u.Host != "" && (!slices.Contains(self, u.Hostname()) || u.Port() != strconv.Itoa(v.target.Port)) {
		return to
	}
	if u.Host == "" && !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, v.prefix+"/") {
		return to // relative to where it is, or built with the prefix
	}
	moved := v.prefix + "/" + strings.TrimPrefix(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		moved += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		moved += "#" + u.EscapedFragment()
	}
	return moved
}

// say answers with a page of our own.
func say(w http.ResponseWriter, status int, title, text string) {
	h := w.Header()
	confine(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><title>%[1]s</title><h1>%[1]s</h1><p>%[2]s</p>\n", html.EscapeString(title), html.EscapeString(text))
}
