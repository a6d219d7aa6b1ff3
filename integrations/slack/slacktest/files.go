package slacktest

import (
	"net/http"
	"slices"
	"strings"
)

const filesPath = "/files-pri/"

// fileInfo tells of a file that was shared where the app is.
func (s *Server) fileInfo(in args) (object, error) {
	f := s.fileFor(in.get("file"))
	if f == nil {
		return nil, refuse("file_not_found")
	}
	return object{"file": s.renderFile(f)}, nil
}

// fileFor finds a file that the app may see.
func (s *Server) fileFor(id string) *file {
	f := find(s.files, func(f *file) bool { return f.id == id })
	if f == nil || !slices.ContainsFunc(f.shared, func(c *channel) bool { return c.has(s.bot) }) {
		return nil
	}
	return f
}

func (s *Server) renderFile(f *file) object {
	_, kind, _ := strings.Cut(f.name, ".")
	address := s.URL + filesPath + f.id + "/" + f.name
	return object{
		"id": f.id, "name": f.name, "title": f.name, "mimetype": f.mime, "filetype": kind, "user": f.by.id, "size": len(f.content),
		"created": f.created.Unix(), "timestamp": f.created.Unix(), "mode": "hosted", "is_external": false,
		"url_private": address, "url_private_download": address,
	}
}

// serveFile hands out a file to the bot's token. Others are sent to where
// people sign in, which is answered with 200 and a page.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	if s.Strike(w, r, "file") {
		return
	}
	content, ok := s.download(r)
	if !ok {
		http.Redirect(w, r, "/?redir="+r.URL.Path, http.StatusFound)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(content) // the client left
}

func (s *Server) download(r *http.Request) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	f := s.fileFor(r.PathValue("id"))
	if f == nil || token != s.token || s.tokenGone != "" || !s.has("files:read") {
		return nil, false
	}
	return f.content, true
}

func serveSignIn(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte("<!DOCTYPE html><title>Sign in to Acme</title>")) // the client left
}
