package gossip

import (
	"context"
	"sync"
)

// mailbox hands values to one slow reader without ever blocking a writer.
// Values that the reader has not taken yet are folded to the newest value per
// key, so it holds at most one value per key. Keys are read in the order in
// which they first waited.
type mailbox[K comparable, V any] struct {
	wake chan struct{} // capacity 1: set while something waits

	mu     sync.Mutex
	order  []K
	latest map[K]V
}

func newMailbox[K comparable, V any]() *mailbox[K, V] {
	return &mailbox[K, V]{wake: make(chan struct{}, 1), latest: make(map[K]V)}
}

func (m *mailbox[K, V]) put(key K, value V) {
	m.mu.Lock()
	if _, waits := m.latest[key]; !waits {
		m.order = append(m.order, key)
	}
	m.latest[key] = value
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox[K, V]) take() []V {
	m.mu.Lock()
	defer m.mu.Unlock()
	values := make([]V, 0, len(m.order))
	for _, key := range m.order {
		values = append(values, m.latest[key])
	}
	m.order = m.order[:0]
	clear(m.latest)
	return values
}

// deliver calls read for every value until ctx ends.
func (m *mailbox[K, V]) deliver(ctx context.Context, read func(V)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		}
		for _, value := range m.take() {
			if ctx.Err() != nil {
				return
			}
			read(value)
		}
	}
}
