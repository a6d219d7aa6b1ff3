package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed" // for the page
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"time"

	"ship/integrations/github"
)

// createdPath is where GitHub sends the browser back to.
const createdPath = "/created"

// deskCloses is how long an answer may take to reach the browser at the end.
const deskCloses = 2 * time.Second

//go:embed setup.html
var deskPage string

// registrar is what makes an app. github.Registration is one.
type registrar interface {
	Manifest() ([]byte, error)
	Page(state string) string
	Convert(ctx context.Context, code string) (github.NewApp, error)
}

// arrival is a browser that came back with a code.
type arrival struct {
	code   string
	answer chan<- verdict // has room for one
}

// verdict is what the browser is told.
type verdict struct {
	app github.NewApp
	err error
}

// desk is the page that sends a browser to GitHub and takes it back.
type desk struct {
	reg registrar
	// path of the page and state are not to be guessed: whoever else is on this
	// machine or in this browser shall neither see the one nor know the other.
	path, state string
	page        *template.Template
	out         io.Writer
	arrivals    chan arrival
	closed      chan struct{}
}

func newDesk(reg registrar, out io.Writer) *desk {
	return &desk{
		reg: reg, path: "/" + rand.Text(), state: rand.Text(), out: out,
		page:     template.Must(template.New("desk").Parse(deskPage)),
		arrivals: make(chan arrival), closed: make(chan struct{}),
	}
}

// serve waits for a browser with a good code, and keeps the app that it is
// good for. It returns when that is done or cannot be done, or when ctx ends.
func (d *desk) serve(ctx context.Context, l net.Listener, keep func(github.NewApp) error) error {
	server := &http.Server{
		Handler:           http.MaxBytesHandler(d.handler(), 64<<10),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(l) }()
	err := d.await(ctx, keep)
	close(d.closed)
	// The answer has to reach the browser, even when ctx is what ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deskCloses)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // a browser that holds a connection open is no problem
	}
	if cause := <-stopped; err == nil && !errors.Is(cause, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", cause)
	}
	return err
}

// await handles one arrival after the other. A code that could not be
// exchanged leaves everything as it was, so the browser may reload.
func (d *desk) await(ctx context.Context, keep func(github.NewApp) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case a := <-d.arrivals:
			app, err := d.reg.Convert(ctx, a.code)
			if err != nil {
				fmt.Fprintf(d.out, "That did not work: %v\n", err)
				a.answer <- verdict{err: err}
				continue
			}
			err = keep(app)
			a.answer <- verdict{app: app, err: err}
			return err
		}
	}
}

func (d *desk) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+d.path, d.welcome)
	mux.HandleFunc("GET "+createdPath, d.created)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		// Nothing is said of forms: browsers would hold a log-in that GitHub puts
		// in between against it.
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
		mux.ServeHTTP(w, r)
	})
}

// deskView is what the page shows: one of a form, an app and a complaint.
type deskView struct {
	Action, Manifest string
	App              github.NewApp
	Complaint        string
}

func (d *desk) show(w http.ResponseWriter, status int, v deskView) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = d.page.Execute(w, v) // the browser left
}

func (d *desk) complain(w http.ResponseWriter, status int, text string) {
	d.show(w, status, deskView{Complaint: text})
}

func (d *desk) welcome(w http.ResponseWriter, _ *http.Request) {
	manifest, err := d.reg.Manifest()
	if err != nil {
		d.complain(w, http.StatusInternalServerError, err.Error())
		return
	}
	d.show(w, http.StatusOK, deskView{Action: d.reg.Page(d.state), Manifest: string(manifest)})
}

func (d *desk) created(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(d.state)) != 1 {
		d.complain(w, http.StatusForbidden, "This does not come from the page that was opened here. Open the link in the terminal again.")
		return
	}
	answer := make(chan verdict, 1)
	select {
	case d.arrivals <- arrival{code: q.Get("code"), answer: answer}:
	case <-d.closed:
		d.complain(w, http.StatusGone, "This is over. See the terminal.")
		return
	case <-r.Context().Done():
		return
	}
	d.tell(w, <-answer)
}

func (d *desk) tell(w http.ResponseWriter, v verdict) {
	switch {
	case v.err != nil && v.app.ID == 0:
		d.complain(w, http.StatusBadGateway, v.err.Error()+". Reload this page to try again, or open the link in the terminal once more.")
	case v.err != nil:
		d.complain(w, http.StatusInternalServerError, "The app exists, but its secrets could not be written. See the terminal.")
	default:
		d.show(w, http.StatusOK, deskView{App: v.app})
	}
}
