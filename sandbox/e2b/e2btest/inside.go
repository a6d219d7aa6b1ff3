package e2btest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Role is the first argument of a program that is to be the daemon of a box.
const Role = "e2btest-envd"

const (
	envdPort    = 49983
	machineHost = "machine"
)

// Inside is the daemon of a box. It returns an exit code.
func Inside() int {
	// The door out, as if it were the one host that is allowed.
	if _, err := os.Stat("/door"); err == nil {
		go passOut()
	}
	syscall.CloseOnExec(4)
	go endWith(os.NewFile(4, "life"))
	file := os.NewFile(3, "socket")
	listener, err := net.FileListener(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "envd:", err)
		return 1
	}
	_ = file.Close()
	server := &http.Server{Handler: inside()}
	fmt.Fprintln(os.Stderr, "envd:", server.Serve(listener))
	return 1
}

// endWith ends the machine when its owner does, or wants it to: with the first
// process, all others end.
func endWith(life *os.File) {
	_, _ = life.Read(make([]byte, 1))
	syscall.Exit(0)
}

func passOut() {
	listener, err := net.Listen("tcp", strings.TrimPrefix(AllowedURL, "http://"))
	if err != nil {
		return
	}
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DialContext: dialUnix("/door")}, FlushInterval: -1, ErrorLog: discard,
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "door" },
	}
	_ = (&http.Server{Handler: proxy}).Serve(listener)
}

func inside() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(machineHost+"/freeze", func(http.ResponseWriter, *http.Request) { _ = syscall.Kill(-1, syscall.SIGSTOP) })
	mux.HandleFunc(machineHost+"/thaw", func(http.ResponseWriter, *http.Request) { _ = syscall.Kill(-1, syscall.SIGCONT) })
	mux.HandleFunc("POST /process.Process/Start", start)
	mux.HandleFunc("POST /files", upload)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		port := r.Header.Get("E2b-Sandbox-Port")
		if r.Host == machineHost || port == strconv.Itoa(envdPort) {
			mux.ServeHTTP(w, r)
			return
		}
		toPort(w, r, port)
	})
}

// toPort passes a request on to another port of the box.
func toPort(w http.ResponseWriter, r *http.Request, port string) {
	_ = http.NewResponseController(w).EnableFullDuplex() // as in Server.enter
	(&httputil.ReverseProxy{
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, FlushInterval: -1, ErrorLog: discard,
		Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", "127.0.0.1:"+port },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			writeJSON(w, http.StatusBadGateway, fmt.Sprintf(
				`{"sandboxId":%q,"message":"The sandbox is running but port is not open","port":%s,"code":502}`, r.Header.Get("E2b-Sandbox-Id"), port))
		},
	}).ServeHTTP(w, r)
}

// upload takes a file as a form or as it is.
func upload(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Query().Get("path")
	body := io.Reader(r.Body)
	if form, err := r.MultipartReader(); err == nil {
		part, err := form.NextPart()
		if err != nil {
			refuse(w, http.StatusBadRequest, "the form cannot be read: %v", err)
			return
		}
		body = part
	}
	if err := writeFile(path, body); err != nil {
		refuse(w, http.StatusInternalServerError, "%v", err)
		return
	}
	reply(w, http.StatusOK, []map[string]string{{"path": path, "name": filepath.Base(path), "type": "file"}})
}

func writeFile(path string, body io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, body)
	return errors.Join(err, file.Close())
}

// stream is the answer of Start: frames of a flag, a length and a message.
type stream struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

// send goes nowhere once the client has left: what it misses is lost.
func (s *stream) send(flags byte, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	frame := binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(message)))
	_, _ = s.w.Write(append(frame, message...))
	_ = http.NewResponseController(s.w).Flush()
}

// fail ends a stream with an error, which has status 200 as all streams do.
func (s *stream) fail(code, message string) {
	body, _ := json.Marshal(map[string]any{"error": map[string]string{"code": code, "message": message}})
	s.send(0x02, string(body))
}

// output is one of a process's two streams.
type output struct {
	*stream
	name string
}

func (o output) Write(p []byte) (int, error) {
	o.send(0, `{"event":{"data":{"`+o.name+`":"`+base64.StdEncoding.EncodeToString(p)+`"}}}`)
	return len(p), nil
}

// startRequest is what Start is asked.
type startRequest struct {
	Process struct {
		Cmd  string            `json:"cmd"`
		Args []string          `json:"args"`
		Envs map[string]string `json:"envs"`
		Cwd  string            `json:"cwd"`
	} `json:"process"`
}

func start(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/connect+json")
	w.Header().Set("Connect-Accept-Encoding", "gzip")
	s := &stream{w: w}
	ask, err := readStart(r)
	user, _, _ := r.BasicAuth()
	switch info, look := os.Stat(ask.Process.Cwd); {
	case err != nil || r.Header.Get("Content-Type") != "application/connect+json":
		s.fail("invalid_argument", "not a request of the Connect protocol")
	case user != "root" && user != User:
		s.fail("unauthenticated", fmt.Sprintf("invalid username: '%s'", user))
	case look != nil || !info.IsDir():
		s.fail("invalid_argument", fmt.Sprintf("cwd '%s' does not exist", ask.Process.Cwd))
	default:
		s.run(ask, r)
	}
}

func readStart(r *http.Request) (startRequest, error) {
	var ask startRequest
	var head [5]byte
	if _, err := io.ReadFull(r.Body, head[:]); err != nil {
		return ask, err
	}
	err := json.NewDecoder(io.LimitReader(r.Body, int64(binary.BigEndian.Uint32(head[1:])))).Decode(&ask)
	return ask, err
}

// run runs a process to the end of all who hold its output, whether or not the
// client stays.
func (s *stream) run(ask startRequest, r *http.Request) {
	cmd := exec.Command(ask.Process.Cmd, ask.Process.Args...)
	cmd.Dir, cmd.Env = ask.Process.Cwd, []string{"PATH=/usr/bin:/bin"}
	for name, value := range ask.Process.Envs {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = output{s, "stdout"}, output{s, "stderr"}
	if err := s.begin(cmd); err != nil {
		s.send(0, `{"event":{"start":{"pid":0}}}`)
		s.send(0, `{"event":{"end":{"exitCode":127, "exited":true, "status":"exit status 127", "error":"exit status 127"}}}`)
		s.send(0x02, "{}")
		return
	}
	// A deadline that is told ends the process, and not only the request.
	if ms, err := strconv.Atoi(r.Header.Get("Connect-Timeout-Ms")); err == nil {
		timer := time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	_ = cmd.Wait()
	s.send(0, `{"event":{"end":{`+ending(cmd.ProcessState)+`}}}`)
	s.send(0x02, "{}")
}

// begin says the number of a process before the first of its output.
func (s *stream) begin(cmd *exec.Cmd) error {
	s.mu.Lock()
	err := cmd.Start()
	if err != nil {
		s.mu.Unlock()
		return err
	}
	message := fmt.Sprintf(`{"event":{"start":{"pid":%d}}}`, cmd.Process.Pid)
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	_, _ = s.w.Write(append(frame, message...))
	_ = http.NewResponseController(s.w).Flush()
	s.mu.Unlock()
	return nil
}

// ending is how the end of a process is told: an exit code of zero is not.
func ending(state *os.ProcessState) string {
	status := state.String()
	switch code := state.ExitCode(); {
	case code == 0:
		return `"exited":true,"status":"` + status + `"`
	case code > 0:
		return fmt.Sprintf(`"exitCode":%d, "exited":true, "status":"%s", "error":"%s"`, code, status, status)
	default:
		return fmt.Sprintf(`"exitCode":-1,"status":"%s","error":"%s"`, status, status)
	}
}
