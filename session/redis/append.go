package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ship/session"
)

// remember is how long dedupe keys live when the delivery does not say: longer
// than the three days for which GitHub redelivers.
const remember = 7 * 24 * time.Hour

// Append implements session.Inbox. Deliveries that come in while others are
// being written go out together in the next round trip. When an answer was
// lost and the delivery sent again, the receipt may call it a duplicate of
// itself. A delivery that does not say how long its keys are kept has them
// remembered for seven days.
func (s *Store) Append(ctx context.Context, d session.Delivery) (session.Receipt, error) {
	p, err := prepare(d)
	if err != nil {
		return session.Receipt{}, err
	}
	err = s.around(ctx, "append", func() error { return s.groupOf(p).do(ctx, p) })
	if err != nil {
		return session.Receipt{}, fmt.Errorf("append to %s: %w", d.Session, err)
	}
	return p.receipt, nil
}

// prepare encodes a delivery for the ingest script.
func prepare(d session.Delivery) (*parcel, error) {
	if d.Session == "" || len(d.Keys) == 0 {
		return nil, errors.New("append: a delivery needs a session and a dedupe key")
	}
	event, err := json.Marshal(d.Event)
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", d.Session, err)
	}
	keep := d.Keep.Milliseconds()
	if keep <= 0 {
		keep = remember.Milliseconds()
	}
	known := 0
	if d.Known {
		known = 1
	}
	k := keysOf(d.Session)
	p := &parcel{
		shard: shardOf(string(d.Session)),
		keys:  []string{k.session, k.inbox, k.sched},
		args:  []any{string(d.Session), len(d.Keys), keep, known, d.Event.V, event},
		size:  len(event),
	}
	for _, key := range d.Keys {
		p.keys = append(p.keys, k.dedupe+key)
	}
	return p, nil
}

// groupOf is where a parcel travels: what goes together must reach one server.
func (s *Store) groupOf(p *parcel) *flusher { return s.groups[p.shard%len(s.groups)] }

// ingest writes a group with one script and fills each parcel's receipt or
// error.
func (s *Store) ingest(ctx context.Context, group []*parcel) {
	var keys []string
	var args []any
	for _, p := range group {
		keys = append(keys, p.keys...)
		args = append(args, p.args...)
	}
	res, err := s.write(ctx, keys, args)
	answers, ok := res.([]any)
	if err == nil && (!ok || len(answers) != len(group)) {
		err = fmt.Errorf("ingest answered %v", res)
	}
	for i, p := range group {
		if p.err = err; err == nil {
			p.receipt, p.err = receipt(answers[i])
		}
	}
}

// write runs the ingest script, and waits for what is to be waited for.
func (s *Store) write(ctx context.Context, keys []string, args []any) (any, error) {
	if s.wait.nothing() {
		return s.run(ctx, ingestScript, keys, args...)
	}
	return s.repeat(ctx, func() (any, error) { return s.writeAndWait(ctx, keys, args) })
}

// receipt reads one answer of the ingest script.
func receipt(answer any) (session.Receipt, error) {
	pair, _ := answer.([]any)
	if len(pair) != 2 {
		return session.Receipt{}, fmt.Errorf("ingest answered %v", answer)
	}
	code, _ := pair[0].(int64)
	seq, isSeq := pair[1].(int64)
	if !isSeq {
		return session.Receipt{}, fmt.Errorf("ingest: %v", pair[1])
	}
	return session.Receipt{Seq: seq, Duplicate: code == 0, Unknown: code == 2}, nil
}
