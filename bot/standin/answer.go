package standin

import (
	"bufio"
	"errors"
	"net"
	"net/http"
)

var errLost = errors.New("the answer is to be lost")

// Handler lets answers of next get lost, as Fault.Lost has it: the client sees
// its connection end after all was done.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w}
		next.ServeHTTP(a, r)
		if a.lost {
			panic(http.ErrAbortHandler)
		}
	})
}

// answer is one that may not reach the client. It hides what else the writer
// below can do, such as flushing, as that would send what is to be lost.
type answer struct {
	http.ResponseWriter
	lost bool
}

func (a *answer) Write(b []byte) (int, error) {
	if a.lost {
		return len(b), nil
	}
	return a.ResponseWriter.Write(b)
}

func (a *answer) WriteHeader(status int) {
	if !a.lost {
		a.ResponseWriter.WriteHeader(status)
	}
}

// Hijack lets a WebSocket take over the connection, unless its handshake is
// what gets lost.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if a.lost {
		return nil, nil, errLost
	}
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// WriteJSON answers with a body that is JSON already.
func WriteJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client left
}
