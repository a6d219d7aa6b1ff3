package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

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
	err = s.around(ctx, "append", func() error { return s.group.do(ctx, p) })
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

// ingest writes a group and fills each parcel's receipt or error. On a single
// node one script takes the whole group; on a cluster each slot has its own.
func (s *Store) ingest(ctx context.Context, group []*parcel) {
	if _, cluster := s.rdb.(*goredis.ClusterClient); !cluster {
		s.ingestTogether(ctx, group)
		return
	}
	var bySlot [shards][]*parcel
	for _, p := range group {
		bySlot[p.shard] = append(bySlot[p.shard], p)
	}
	var wg sync.WaitGroup
	for _, part := range bySlot {
		if len(part) > 0 {
			wg.Go(func() { s.ingestTogether(ctx, part) })
		}
	}
	wg.Wait()
}

// ingestTogether writes parcels with one script.
func (s *Store) ingestTogether(ctx context.Context, group []*parcel) {
	var keys []string
	var args []any
	for _, p := range group {
		keys = append(keys, p.keys...)
		args = append(args, p.args...)
	}
	res, err := s.run(ctx, ingestScript, keys, args...)
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
