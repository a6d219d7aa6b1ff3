package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

// Wakes implements session.Store. It reconnects by itself; a receiver that
// does not keep up loses hints. The goroutine that serves it ends with ctx.
func (s *Store) Wakes(ctx context.Context) <-chan session.ID {
	ch := make(chan session.ID, 256)
	go func() {
		defer close(ch)
		sub := s.rdb.Subscribe(ctx, wakeChannel)
		forward(ctx, sub.Channel(), ch)
		if err := sub.Close(); err != nil {
			s.log.WarnContext(ctx, "ending the subscription", "err", err)
		}
	}()
	return ch
}

func forward(ctx context.Context, from <-chan *goredis.Message, to chan<- session.ID) {
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-from:
			if !ok {
				return
			}
			select {
			case to <- session.ID(m.Payload):
			default:
			}
		}
	}
}
