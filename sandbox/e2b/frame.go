package e2b

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"ship/sandbox"
)

// The flags of a frame of a Connect stream: one byte, before the length in four
// and the message.
const (
	frameCompressed = 0x01
	frameEnd        = 0x02
)

// maxFrame is the largest message that is taken, in bytes. Those of a process
// carry at most 64 KiB of output.
const maxFrame = 4 << 20

// errCut is a stream without an end frame: what became of the process is not
// known.
var errCut = fmt.Errorf("the stream was cut, so its outcome is not known: %w", sandbox.ErrTransient)

var errFrame = errors.New("not a frame of the Connect protocol")

// envelope wraps the message of a request.
func envelope(message []byte) []byte {
	frame := make([]byte, 5, 5+len(message))
	binary.BigEndian.PutUint32(frame[1:], uint32(len(message)))
	return append(frame, message...)
}

// readFrame returns the next message of a stream, and whether it is the last.
// A stream that ends before its last frame: errCut.
func readFrame(r io.Reader) (message []byte, last bool, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, false, fmt.Errorf("%w (%w)", errCut, err)
	}
	size := binary.BigEndian.Uint32(head[1:])
	if head[0]&^frameEnd != 0 || size > maxFrame {
		return nil, false, fmt.Errorf("flags %#02x, %d bytes: %w", head[0], size, errFrame)
	}
	// Grown as it comes: the length is only what somebody says.
	message, err = io.ReadAll(io.LimitReader(r, int64(size)))
	if err == nil && len(message) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w (%w)", errCut, err)
	}
	return message, head[0]&frameEnd != 0, nil
}

// event is a message of a process's stream. All that is absent is zero.
type event struct {
	Event struct {
		Start *struct {
			PID int `json:"pid"`
		} `json:"start"`
		Data *struct {
			Stdout []byte `json:"stdout"`
			Stderr []byte `json:"stderr"`
		} `json:"data"`
		End *struct {
			ExitCode int    `json:"exitCode"`
			Exited   bool   `json:"exited"`
			Status   string `json:"status"`
			Error    string `json:"error"`
		} `json:"end"`
	} `json:"event"`
}

// result is a process that has ended. ExitCode is -1 if a signal ended it.
type result struct {
	pid            int
	exitCode       int
	status         string
	stdout, stderr []byte
}

// maxKept is how much of a process's output is kept, in bytes. It is read to
// its end all the same: a slow reader would halt the process.
const maxKept = 64 << 10

func keep(all, more []byte) []byte {
	return append(all, more[:min(len(more), maxKept-len(all))]...)
}

// readResult reads a process's stream to its end frame. An error within the
// stream comes with status 200, and is a Fault.
func readResult(r io.Reader) (result, error) {
	var res result
	ended := false
	for {
		message, last, err := readFrame(r)
		if err != nil {
			return res, err
		}
		if last {
			if err := endError(message); err != nil {
				return res, err
			}
			if !ended {
				return res, fmt.Errorf("no end of the process was told: %w", errCut)
			}
			return res, nil
		}
		over, err := res.take(message)
		if err != nil {
			return res, err
		}
		ended = ended || over
	}
}

func (res *result) take(message []byte) (ended bool, err error) {
	var e event
	if err := json.Unmarshal(message, &e); err != nil {
		return false, fmt.Errorf("decoding an event: %w: %w", errFrame, err)
	}
	if start := e.Event.Start; start != nil {
		res.pid = start.PID
	}
	if data := e.Event.Data; data != nil {
		res.stdout, res.stderr = keep(res.stdout, data.Stdout), keep(res.stderr, data.Stderr)
	}
	if end := e.Event.End; end != nil {
		res.exitCode, res.status = end.ExitCode, end.Status
		if !end.Exited && res.exitCode == 0 {
			res.exitCode = -1
		}
		return true, nil
	}
	return false, nil
}

// endError is what an end frame says went wrong.
func endError(message []byte) error {
	var end struct {
		Error *answer `json:"error"`
	}
	if err := json.Unmarshal(message, &end); err != nil {
		return fmt.Errorf("decoding the end of a stream: %w: %w", errFrame, err)
	}
	if end.Error == nil {
		return nil
	}
	return end.Error.fault(0, connectKind(end.Error.word()))
}
