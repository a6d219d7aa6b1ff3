package redis

import (
	"fmt"
	"hash/fnv"

	"ship/session"
)

const (
	// shards is how many hash tags the keys are spread over. It is written to
	// the server once and can never change for its data.
	shards = 16
	// shardsKey holds that number.
	shardsKey = "ship:shards"
	// wakeChannel carries ids of sessions to look at. A hint only.
	wakeChannel = "ship:wake"
)

// tag is the hash tag of a shard.
func tag(shard int) string { return fmt.Sprintf("{%02d}", shard) }

// shardOf places a session, or an account, by FNV-1a.
func shardOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails, says hash.Hash
	return int(h.Sum32() % shards)
}

// keys are those of one session. They share a slot.
type keys struct {
	session, state, inbox, log string
	sched, dlq                 string
	dedupe                     string // prefix
}

func keysOf(id session.ID) keys {
	t := tag(shardOf(string(id)))
	return keys{
		session: t + ":s:" + string(id),
		state:   t + ":st:" + string(id),
		inbox:   t + ":in:" + string(id),
		log:     t + ":log:" + string(id),
		sched:   schedKey(shardOf(string(id))),
		dlq:     deadKey(shardOf(string(id))),
		dedupe:  t + ":dlv:",
	}
}

func schedKey(shard int) string { return tag(shard) + ":sched" }

func accountKey(name string) string { return tag(shardOf(name)) + ":spend:" + name }
