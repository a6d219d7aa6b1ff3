package redis

import (
	"context"
	"encoding/json"
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

// entry is a stream entry as the ingest script wrote it.
type entry struct {
	seq, at int64
	version int
	event   string
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
		ev, err := e.decode()
		if err != nil {
			return nil, err
		}
		events = append(events, ev)
	}
	return events, nil
}

func (e entry) decode() (session.Event, error) {
	var ev session.Event
	if err := json.Unmarshal([]byte(e.event), &ev); err != nil {
		return ev, fmt.Errorf("decode event %d: %w", e.seq, err)
	}
	ev.Seq, ev.At = e.seq, time.UnixMilli(e.at).UTC()
	return ev, nil
}

// parseEntry reads [id, [v, VERSION, at, MS, e, JSON]].
func parseEntry(raw any) (entry, error) {
	pair, _ := raw.([]any)
	if len(pair) != 2 {
		return entry{}, fmt.Errorf("unexpected entry %v", raw)
	}
	id, _ := pair[0].(string)
	seq, _, _ := strings.Cut(id, "-")
	fields, _ := pair[1].([]any)
	text := make(map[string]string, 3)
	for i := 0; i+1 < len(fields); i += 2 {
		name, _ := fields[i].(string)
		text[name], _ = fields[i+1].(string)
	}
	var e entry
	var errs [3]error
	e.seq, errs[0] = strconv.ParseInt(seq, 10, 64)
	e.at, errs[1] = strconv.ParseInt(text["at"], 10, 64)
	e.version, errs[2] = strconv.Atoi(text["v"])
	e.event = text["e"]
	for _, err := range errs {
		if err != nil {
			return entry{}, fmt.Errorf("entry %q: %w", id, err)
		}
	}
	return e, nil
}
