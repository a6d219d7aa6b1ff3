package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ship/session"
)

// Read implements session.Store. Events of a newer release and what follows
// them are left out; ErrTooNew when there is nothing before them.
func (s *Store) Read(ctx context.Context, id session.ID, after int64) ([]session.Event, error) {
	start := strconv.FormatInt(after+1, 10) + "-0"
	entries, err := s.rdb.Do(ctx, "XRANGE", keysOf(id).inbox, start, "+", "COUNT", batch).Result()
	if err != nil {
		return nil, fmt.Errorf("read inbox of %s: %w", id, err)
	}
	events, err := decode(entries)
	if err != nil {
		return nil, fmt.Errorf("read inbox of %s: %w", id, err)
	}
	return events, nil
}

// entry is a stream entry as the ingest script wrote it, or one with a flaw.
type entry struct {
	seq, at int64
	version int
	event   string
	flaw    error
}

// decode returns the events up to the first one of a newer release, and
// ErrTooNew when that is the first of all.
func decode(reply any) ([]session.Event, error) {
	list, ok := reply.([]any)
	if !ok && reply != nil {
		return nil, fmt.Errorf("unexpected entries %v", reply)
	}
	var events []session.Event
	for i, raw := range list {
		e, err := parseEntry(raw)
		if err != nil {
			return nil, err
		}
		if e.version > session.EventVersion && i == 0 {
			return nil, session.ErrTooNew
		}
		if e.version > session.EventVersion {
			return events, nil
		}
		events = append(events, e.decode())
	}
	return events, nil
}

func (e entry) decode() session.Event {
	var ev session.Event
	if e.flaw == nil {
		e.flaw = json.Unmarshal([]byte(e.event), &ev)
	}
	if e.flaw != nil {
		ev = session.Event{V: e.version, Kind: session.Garbled, Raw: []byte(e.event), Flaw: e.flaw.Error()}
	}
	ev.Seq, ev.At = e.seq, time.UnixMilli(e.at).UTC()
	return ev
}

// parseEntry reads [id, [v, VERSION, at, MS, e, JSON]]. Without a position an
// entry is an error, for nothing could be put aside.
func parseEntry(raw any) (entry, error) {
	pair, _ := raw.([]any)
	if len(pair) != 2 {
		return entry{}, fmt.Errorf("unexpected entry %v", raw)
	}
	id, _ := pair[0].(string)
	seq, _, _ := strings.Cut(id, "-")
	fields, ok := pair[1].([]any)
	if !ok {
		return entry{}, fmt.Errorf("unexpected entry %v", raw)
	}
	text := make(map[string]string, 3)
	for i := 0; i+1 < len(fields); i += 2 {
		name, _ := fields[i].(string)
		text[name], _ = fields[i+1].(string)
	}
	var e entry
	var err, flawAt, flawVersion error
	if e.seq, err = strconv.ParseInt(seq, 10, 64); err != nil {
		return entry{}, fmt.Errorf("entry %q: %w", id, err)
	}
	e.at, flawAt = strconv.ParseInt(text["at"], 10, 64)
	e.version, flawVersion = strconv.Atoi(text["v"])
	e.event, e.flaw = text["e"], errors.Join(flawAt, flawVersion)
	if e.flaw != nil {
		e.version, e.event = 0, fmt.Sprint(fields)
	}
	return e, nil
}
