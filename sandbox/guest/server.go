package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"ship/sandbox"
)

// server is the guest's API: HTTP and JSON on a socket that only the provider
// can reach, or for whoever shows the guest's secret. sandbox.Command and sandbox.Process travel as they are.
type server struct {
	box       string
	files     *files
	processes *processes
}

// maxCommand bounds a command with its input, which travels in base64.
const maxCommand = maxFile / 3 * 4

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/health", s.health)
	mux.HandleFunc("POST /v1/processes", s.spawn)
	mux.HandleFunc("GET /v1/processes/{name}", s.process)
	mux.HandleFunc("POST /v1/processes/{name}/kill", s.kill)
	mux.HandleFunc("GET /v1/file", s.read)
	mux.HandleFunc("PUT /v1/file", s.write)
	mux.HandleFunc("POST /v1/dial", s.dial)
	mux.HandleFunc("GET /v1/dial", s.dial) // as a WebSocket has to be asked for
	mux.HandleFunc("POST /v1/terminal", s.terminal)
	mux.HandleFunc("GET /v1/terminal", s.terminal)
	return mux
}

// health is what Client.Health asks for.
type health struct {
	Box string `json:"box"`
}

func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	reply(w, health{Box: s.box})
}

func (s *server) spawn(w http.ResponseWriter, r *http.Request) {
	var cmd sandbox.Command
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommand)).Decode(&cmd); err != nil {
		refuse(w, fmt.Errorf("reading the command: %w", errors.Join(err, fs.ErrInvalid)))
		return
	}
	p, err := s.processes.spawn(cmd)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, p)
}

func (s *server) process(w http.ResponseWriter, r *http.Request) {
	p, err := s.processes.find(r.PathValue("name"))
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, p.state())
}

func (s *server) kill(w http.ResponseWriter, r *http.Request) {
	grace, err := time.ParseDuration(r.FormValue("grace"))
	if err != nil {
		refuse(w, errors.Join(err, fs.ErrInvalid))
		return
	}
	if err := s.processes.kill(r.Context(), r.PathValue("name"), grace); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *server) read(w http.ResponseWriter, r *http.Request) {
	off, err := strconv.ParseInt(r.FormValue("offset"), 10, 64)
	if err != nil {
		refuse(w, errors.Join(err, fs.ErrInvalid))
		return
	}
	data, err := s.files.read(r.FormValue("path"), off)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(data)
}

func (s *server) write(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	mode, err := strconv.ParseUint(query.Get("mode"), 8, 32)
	if err != nil {
		refuse(w, errors.Join(err, fs.ErrInvalid))
		return
	}
	body := http.MaxBytesReader(w, r.Body, maxFile)
	if err := s.files.write(query.Get("path"), body, fs.FileMode(mode)); err != nil {
		// Who is interrupted may not listen any more, and takes it for a fault.
		_, _ = io.Copy(io.Discard, body)
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// dial turns the connection into one to a TCP port of the box.
func (s *server) dial(w http.ResponseWriter, r *http.Request) {
	port, err := strconv.ParseUint(r.FormValue("port"), 10, 16)
	if err != nil || port == 0 {
		refuse(w, fmt.Errorf("port %q: %w", r.FormValue("port"), fs.ErrInvalid))
		return
	}
	inner, err := new(net.Dialer).DialContext(r.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.FormatUint(port, 10)))
	if err != nil {
		refuse(w, errors.Join(errClosedPort, err))
		return
	}
	outer, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = inner.Close()
		refuse(w, err)
		return
	}
	if err := switchTo(outer, r); err == nil {
		var through net.Conn = &conn{Conn: outer, buffered: buffered.Reader}
		if isFramed(r) {
			through = &framed{Conn: outer, in: buffered.Reader}
		}
		join(inner, through)
	}
	_, _ = inner.Close(), outer.Close()
}

func isFramed(r *http.Request) bool { return r.Header.Get("Upgrade") == "websocket" }

// switchTo says that the connection is no longer one of HTTP.
func switchTo(outer net.Conn, r *http.Request) error {
	protocol := "tcp"
	if isFramed(r) {
		protocol = "websocket\r\nSec-WebSocket-Accept: " + websocketKey(r.Header.Get("Sec-WebSocket-Key"))
	}
	_, err := io.WriteString(outer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
	return err
}

// join copies both ways until both have ended.
func join(inner, outer net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { pass(inner, outer) })
	both.Go(func() { pass(outer, inner) })
	both.Wait()
}

// pass copies and hands on the end of the stream, as the other direction may
// go on.
func pass(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok {
		_ = to.Close()
		return
	}
	_ = half.CloseWrite()
}

// errClosedPort: nothing listens there, at least not yet.
var errClosedPort = errors.New("the port is closed")

// failure is an error on its way to the client.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// refusals are the errors that keep their meaning on the way to the client.
var refusals = []struct {
	err    error
	code   string
	status int
}{
	{sandbox.ErrGone, "gone", http.StatusNotFound},
	{sandbox.ErrAuth, "unauthorized", http.StatusUnauthorized},
	{fs.ErrNotExist, "not_exist", http.StatusNotFound},
	{fs.ErrPermission, "refused", http.StatusForbidden},
	{fs.ErrInvalid, "invalid", http.StatusBadRequest},
	{errClosedPort, "closed_port", http.StatusBadGateway},
}

func refuse(w http.ResponseWriter, err error) {
	f, status := failure{Code: "internal", Message: err.Error()}, http.StatusInternalServerError
	for _, known := range refusals {
		if errors.Is(err, known.err) {
			f.Code, status = known.code, known.status
			break
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f)
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
