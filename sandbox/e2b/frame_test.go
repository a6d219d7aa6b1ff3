package e2b

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"ship/sandbox"
)

// frame writes one as it stands in a recording.
func frame(flags byte, message string) string {
	head := binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(message)))
	return string(head) + message
}

// recorded is what a real daemon answered.
var recorded = frame(0, `{"event":{"start":{"pid":16302}}}`) +
	frame(0, `{"event":{"data":{"stderr":"ZXJyCg=="}}}`) +
	frame(0, `{"event":{"keepalive":{}}}`) +
	frame(0, `{"event":{"data":{"stdout":"b3V0CmJhcgo="}}}`) +
	frame(0, `{"event":{"end":{"exitCode":3, "exited":true, "status":"exit status 3", "error":"exit status 3"}}}`) +
	frame(2, `{}`)

func TestReadResult(t *testing.T) {
	t.Parallel()
	for _, reader := range []io.Reader{strings.NewReader(recorded), byByte{strings.NewReader(recorded)}} {
		res, err := readResult(reader)
		if err != nil || res.pid != 16302 || res.exitCode != 3 || string(res.stdout) != "out\nbar\n" || string(res.stderr) != "err\n" {
			t.Errorf("%+v, %v", res, err)
		}
	}
}

// byByte returns as little as it may.
type byByte struct{ io.Reader }

func (b byByte) Read(p []byte) (int, error) { return b.Reader.Read(p[:min(1, len(p))]) }

func TestReadResultEnds(t *testing.T) {
	t.Parallel()
	start := frame(0, `{"event":{"start":{"pid":7}}}`)
	for name, c := range map[string]struct {
		stream string
		code   int
		err    error
	}{
		"no code is zero":    {start + frame(0, `{"event":{"end":{"exited":true,"status":"exit status 0"}}}`) + frame(2, "{}"), 0, nil},
		"a signal":           {start + frame(0, `{"event":{"end":{"exitCode":-1,"status":"signal: killed"}}}`) + frame(2, "{}"), -1, nil},
		"a signal, no code":  {start + frame(0, `{"event":{"end":{"status":"signal: killed"}}}`) + frame(2, "{}"), -1, nil},
		"nothing":            {"", 0, errCut},
		"cut after start":    {start, 0, errCut},
		"cut in a head":      {start + "\x00\x00", 0, errCut},
		"cut in a message":   {start + frame(0, `{"event":{}}`)[:9], 0, errCut},
		"cut before the end": {start + frame(0, `{"event":{"end":{"exited":true}}}`), 0, errCut},
		"end of no process":  {start + frame(2, "{}"), 0, errCut},
		"compressed":         {frame(1, "x"), 0, errFrame},
		"too long":           {"\x00\xff\xff\xff\xff", 0, errFrame},
		"no JSON":            {frame(0, "x"), 0, errFrame},
		"no JSON at the end": {frame(2, "x"), 0, errFrame},
		"an error":           {frame(2, `{"error":{"code":"unauthenticated","message":"no user"}}`), 0, sandbox.ErrAuth},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := readResult(strings.NewReader(c.stream))
			if !errors.Is(err, c.err) || err == nil && res.exitCode != c.code {
				t.Errorf("%+v, %v, want %d, %v", res, err, c.code, c.err)
			}
		})
	}
	if !errors.Is(errCut, sandbox.ErrTransient) {
		t.Error("what is not known may be asked again")
	}
}

// TestReadResultBounded: a process that prints without end is read to its end,
// and only the beginning is kept.
func TestReadResultBounded(t *testing.T) {
	t.Parallel()
	chunk := frame(0, `{"event":{"data":{"stdout":"`+strings.Repeat("eHh4", 10<<10)+`"}}}`)
	stream := strings.Repeat(chunk, 8) + frame(0, `{"event":{"end":{"exited":true}}}`) + frame(2, "{}")
	if res, err := readResult(strings.NewReader(stream)); err != nil || len(res.stdout) != maxKept {
		t.Errorf("%d bytes, %v", len(res.stdout), err)
	}
}

// TestEnvelope: the bytes of a request, as recorded.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	got := envelope([]byte(strings.Repeat("x", 0xa6)))
	if hex.EncodeToString(got[:5]) != "00000000a6" || len(got) != 5+0xa6 {
		t.Errorf("%x", got[:5])
	}
}

// FuzzReadResult: whatever comes, it ends, and a stream without an end frame is
// never taken for a process that has ended.
func FuzzReadResult(f *testing.F) {
	f.Add([]byte(recorded))
	f.Add([]byte(frame(0, `{"event":{"end":{"exited":true,"status":"exit status 0"}}}`) + frame(2, "{}")))
	f.Add([]byte(frame(2, `{"error":{"code":"invalid_argument","message":"cwd '/nope' does not exist"}}`)))
	f.Add([]byte(frame(2, `{"error":{"code":401,"message":"x"}}`)))
	f.Add([]byte("\x00\xff\xff\xff\xff"))
	f.Add([]byte("\x00\x00\x00\x00\x02{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		res, err := readResult(bytes.NewReader(data))
		if len(res.stdout) > maxKept || len(res.stderr) > maxKept {
			t.Errorf("kept %d and %d bytes", len(res.stdout), len(res.stderr))
		}
		if err == nil && !bytes.Contains(data, []byte{frameEnd}) {
			t.Error("it ended without an end frame")
		}
	})
}

// FuzzAnswer: an answer of any shape is an error, and says nothing that is not
// text.
func FuzzAnswer(f *testing.F) {
	f.Add(502, []byte(`{"sandboxId":"i1","message":"The sandbox was not found","code":502}`))
	f.Add(401, []byte(`{"code":401,"message":"x"}`))
	f.Add(404, []byte(`{"code":"not_found","message":"x"}`))
	f.Add(500, []byte(`[]`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, fault := range []*Fault{apiFault(status, nil, body), proxyFault(status, nil, body)} {
			if fault.Error() == "" || len(fault.Message) > 3*maxMessage {
				t.Errorf("%q", fault.Error())
			}
		}
	})
}
