package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"ship/session"
)

// Config of a Server. Receivers need an Inbox; everything else may be left out.
type Config struct {
	// Inbox takes what the receivers decoded.
	Inbox session.Inbox
	// Receivers by platform: "github" receives POST /webhooks/github.
	Receivers map[string]Receiver
	// Ready says why nothing can be accepted just now; nil when it can.
	Ready func(context.Context) error
	// Mounts are further handlers by pattern, such as "/broker/". They set their
	// own deadlines.
	Mounts map[string]http.Handler
	// Metrics count what comes in, and are served at /metrics with all that is in
	// their registry; nil: some of the Server's own.
	Metrics *Metrics
	// Tracer has a span for every webhook that is for a session; nil: none.
	Tracer trace.Tracer
	Logger *slog.Logger
	Timeouts
}

// Timeouts of a Server. Zero means the default.
type Timeouts struct {
	// Header is how long a client may take to send the head of a request
	// (default 5 s), Body how long a webhook may take in all (10 s: GitHub gives
	// up then).
	Header, Body time.Duration
	// Append is how long the inbox may take (2 s).
	Append time.Duration
	// Linger is how long to go on accepting after the end was announced, so
	// that load balancers notice (none).
	Linger time.Duration
	// Grace is how long running requests may take to finish after that (10 s).
	Grace time.Duration
}

func (t Timeouts) withDefaults() Timeouts {
	def := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	def(&t.Header, 5*time.Second)
	def(&t.Body, 10*time.Second)
	def(&t.Append, 2*time.Second)
	def(&t.Grace, 10*time.Second)
	return t
}

// maxHeader is the head of a request, with room for a broker's tokens.
const maxHeader = 64 << 10

// Server is the front door. Make it with NewServer.
type Server struct {
	cfg      Config
	handler  http.Handler
	draining atomic.Bool
	// unready is what readiness was last, so that only changes are logged.
	unready atomic.Bool
}

// NewServer returns a Server that does not listen yet.
func NewServer(c Config) *Server {
	c.Timeouts = c.Timeouts.withDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider().Tracer("")
	}
	s := &Server{cfg: c}
	s.handler = s.routes()
	return s
}

// Handler serves all that the Server offers; for tests and for embedding.
func (s *Server) Handler() http.Handler { return s.handler }

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for name := range s.cfg.Receivers {
		mux.Handle("/webhooks/"+name, newIntake(s.cfg, name, s.cfg.Metrics.of(name)))
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", s.ready)
	for pattern, h := range s.cfg.Mounts {
		mux.Handle(pattern, guard{next: h, mount: pattern, log: s.cfg.Logger})
	}
	return mux
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		answer(w, http.StatusServiceUnavailable, "shutting down")
		return
	}
	err := s.check(r.Context())
	if was := s.unready.Swap(err != nil); was != (err != nil) {
		s.cfg.Logger.WarnContext(r.Context(), "readiness changed", "ready", err == nil, "err", err)
	}
	if err != nil {
		answer(w, http.StatusServiceUnavailable, "not ready")
		return
	}
	answer(w, http.StatusOK, "ready")
}

func (s *Server) check(ctx context.Context) error {
	if s.cfg.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Append)
	defer cancel()
	return s.cfg.Ready(ctx)
}

// Run serves on l until ctx ends. Then readiness goes off, the listener is
// closed after Linger, and requests that are running may finish for Grace; an
// error says that some did not. The listener is closed in any case.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	// Requests outlive ctx by their grace, so they do not inherit its end.
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(session.ErrShutdown)
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: s.cfg.Header,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(l) }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	err := s.shutDown(base, server)
	cancel(session.ErrShutdown)
	<-stopped
	return err
}

func (s *Server) shutDown(ctx context.Context, server *http.Server) error {
	if s.cfg.Linger > 0 {
		<-time.After(s.cfg.Linger)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Grace)
	defer cancel()
	err := server.Shutdown(ctx)
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("requests still ran after %s", s.cfg.Grace)
	}
	return errors.Join(fmt.Errorf("stop http: %w", err), server.Close())
}
