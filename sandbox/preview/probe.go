package preview

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"ship/sandbox"
)

// probePatience is how long a server may take to answer one probe.
const probePatience = 5 * time.Second

// Answers tells whether a server in a box answers on a port: anything to a GET
// of / but a fault of its own, which is a status of 500 and above.
func Answers(ctx context.Context, box sandbox.Box, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return box.Dial(ctx, port) },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost:"+strconv.Itoa(port)+"/", nil)
	if err != nil {
		return false
	}
	response, err := transport.RoundTrip(request) // a redirect is an answer
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<10)
	return response.StatusCode < http.StatusInternalServerError
}
