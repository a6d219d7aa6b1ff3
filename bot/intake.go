package bot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"ship/session"
)

const (
	// maxWebhook is the longest body that is read: GitHub sends none above
	// 25 MB.
	maxWebhook = 25 << 20
	// maxPooled is the largest buffer that is kept for the next request.
	maxPooled = 1 << 20
)

// What became of a webhook that a receiver did not decide on. Received.Outcome
// says the rest.
const (
	outcomeAccepted    = "accepted"
	outcomeIgnored     = "ignored"
	outcomeDuplicate   = "duplicate"
	outcomeUnknown     = "no such session"
	outcomeForged      = "forged"
	outcomeStale       = "too old"
	outcomeMalformed   = "malformed"
	outcomeTooLarge    = "too large"
	outcomeTooSlow     = "too slow"
	outcomeCutOff      = "cut off"
	outcomeMethod      = "wrong method"
	outcomeUnavailable = "unavailable"
	outcomeBroken      = "broken"
)

// intake is the way from one platform's webhooks into the inbox.
type intake struct {
	receiver Receiver
	inbox    session.Inbox
	meter    meter
	tracer   trace.Tracer
	platform string
	log      *slog.Logger
	body     time.Duration
	append   time.Duration
	buffers  *sync.Pool
}

func newIntake(c Config, platform string, m meter) *intake {
	return &intake{
		receiver: c.Receivers[platform], inbox: c.Inbox, meter: m, tracer: c.Tracer, platform: platform,
		log: c.Logger.With("platform", platform), body: c.Body, append: c.Append,
		buffers: &sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// result is what becomes of one webhook.
type result struct {
	status int
	say    string
	// body takes the place of say when all went well.
	body    *string
	outcome string
	event   string
	// delivery and session are for the log; err only for that.
	delivery string
	session  session.ID
	err      error
}

// ServeHTTP answers 200 only when everything in the webhook is in the inbox,
// or needs not be.
func (in *intake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	in.meter.inFlight.Inc()
	res := in.take(w, r)
	in.meter.inFlight.Dec()
	if res.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	if res.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	if res.status == http.StatusOK && res.body != nil {
		write(w, res.status, *res.body)
	} else {
		answer(w, res.status, res.say)
	}
	took := time.Since(start)
	in.meter.answered(res.event, res.outcome, took)
	in.note(r.Context(), res, took)
}

// take reads, verifies and appends. A panic on the way is a broken webhook.
func (in *intake) take(w http.ResponseWriter, r *http.Request) (res result) {
	defer func() {
		if p := recover(); p != nil {
			in.log.ErrorContext(r.Context(), "webhook panicked",
				"delivery", res.delivery, "session", res.session, "panic", p, "stack", string(debug.Stack()))
			res = result{status: http.StatusInternalServerError, say: "internal error", outcome: outcomeBroken}
		}
	}()
	began := time.Now()
	if r.Method != http.MethodPost {
		return result{status: http.StatusMethodNotAllowed, say: "use POST", outcome: outcomeMethod}
	}
	buf, ok := in.buffers.Get().(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
	defer in.release(buf)
	if err := in.read(w, r, buf); err != nil {
		return unreadable(err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), in.append)
	defer cancel()
	got, err := in.receiver.Receive(ctx, r.Header, buf.Bytes())
	if err != nil {
		return refused(got, err)
	}
	ctx, ended := in.trace(ctx, got, began)
	defer func() { ended(res) }()
	return in.keep(ctx, got)
}

// trace is around the keeping of a webhook that is for a session. Others are
// too many to be of interest, and have nothing that follows.
func (in *intake) trace(ctx context.Context, got Received, began time.Time) (context.Context, func(result)) {
	if len(got.Deliveries) == 0 {
		return ctx, func(result) {}
	}
	ctx = session.WithLog(ctx, "delivery", got.Delivery)
	ctx, span := in.tracer.Start(ctx, "webhook", trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(
			attribute.String("ship.platform", in.platform), attribute.String("ship.event", knownEvent(got.Event)),
			attribute.String("ship.delivery", got.Delivery)))
	return ctx, func(res result) {
		span.SetAttributes(attribute.String("ship.outcome", res.outcome), attribute.Int("http.response.status_code", res.status))
		if res.err != nil {
			span.SetStatus(codes.Error, res.outcome)
		}
		span.End()
	}
}

// release keeps a buffer for the next request. Nobody may hold on to a body:
// Receive copies what it needs.
func (in *intake) release(buf *bytes.Buffer) {
	if buf.Cap() <= maxPooled {
		buf.Reset()
		in.buffers.Put(buf)
	}
}

var errTooLarge = errors.New("body is too large")

// read reads the body. One that is announced as too large is not read at all.
func (in *intake) read(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer) error {
	if r.ContentLength > maxWebhook {
		w.Header().Set("Connection", "close")
		return errTooLarge
	}
	// Only a recorder in a test has no deadline to set.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(in.body))
	if n := r.ContentLength; n > 0 {
		buf.Grow(int(min(n, maxPooled/2)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, maxWebhook))
	return err
}

func unreadable(err error) result {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errTooLarge), errors.As(err, &tooLarge):
		return result{status: http.StatusRequestEntityTooLarge, say: "body is too large", outcome: outcomeTooLarge}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return result{status: http.StatusRequestTimeout, say: "body came too slowly", outcome: outcomeTooSlow}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.Canceled):
		return result{status: http.StatusBadRequest, say: "body was cut off", outcome: outcomeCutOff}
	}
	return result{status: http.StatusBadRequest, say: "body could not be read", outcome: outcomeCutOff, err: err}
}

// refused answers what a receiver did not let in.
func refused(got Received, err error) result {
	res := result{event: got.Event, delivery: got.Delivery, err: err}
	switch {
	case errors.Is(err, ErrForged):
		res.status, res.say, res.outcome = http.StatusUnauthorized, ErrForged.Error(), outcomeForged
	case errors.Is(err, ErrStale):
		res.status, res.say, res.outcome = http.StatusUnauthorized, ErrStale.Error(), outcomeStale
	case errors.Is(err, ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		res.status, res.say, res.outcome = http.StatusServiceUnavailable, ErrUnavailable.Error(), outcomeUnavailable
	case errors.Is(err, ErrMalformed):
		res.status, res.say, res.outcome = http.StatusBadRequest, ErrMalformed.Error(), outcomeMalformed
	default:
		res.status, res.say, res.outcome = http.StatusInternalServerError, "internal error", outcomeBroken
	}
	return res
}

// keep appends all deliveries of a webhook, or none is claimed: the platform
// repeats the webhook, and those that were appended are then duplicates.
func (in *intake) keep(ctx context.Context, got Received) result {
	res := result{status: http.StatusOK, event: got.Event, delivery: got.Delivery, outcome: got.Outcome, body: got.Answer}
	if len(got.Deliveries) == 0 {
		if res.outcome == "" {
			res.outcome = outcomeIgnored
		}
		res.say = "nothing to do: " + res.outcome
		return res
	}
	res.outcome, res.say = outcomeDuplicate, "already have it"
	for _, d := range got.Deliveries {
		res.session = d.Session
		receipt, err := in.inbox.Append(ctx, d)
		if err != nil {
			res.status, res.say, res.outcome = http.StatusServiceUnavailable, ErrUnavailable.Error(), outcomeUnavailable
			res.err = err
			return res
		}
		switch {
		case receipt.Unknown:
			res.outcome, res.say = outcomeUnknown, "nothing to do: "+outcomeUnknown
		case !receipt.Duplicate:
			res.outcome, res.say = outcomeAccepted, "accepted"
		}
	}
	return res
}

// note logs one line per webhook: what was refused or failed as a warning, what
// is not for us only for those who ask.
func (in *intake) note(ctx context.Context, res result, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case res.status >= http.StatusBadRequest:
		level = slog.LevelWarn
	case res.session == "":
		level = slog.LevelDebug
	}
	if !in.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("delivery", res.delivery), slog.String("session", string(res.session)),
		slog.String("event", knownEvent(res.event)), slog.String("outcome", res.outcome), slog.Duration("took", took),
	}
	if res.err != nil {
		attrs = append(attrs, slog.Any("err", res.err))
	}
	in.log.LogAttrs(ctx, level, "webhook", attrs...)
}

// answer writes one plain line.
func answer(w http.ResponseWriter, status int, line string) { write(w, status, line+"\n") }

func write(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the client is gone, and so is the one to tell
}
