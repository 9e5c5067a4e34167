package queue

import (
	"fmt"
	"testing"
)

// waiting returns a queue of n units and their keys, in order.
func waiting(n int) (*Queue, []Key) {
	var q Queue
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = Key{Priority: int32(10 - i*20/n), Epoch: 7, Counter: uint64(i), Path: fmt.Sprintf("ns/alloc/u%d/0", i)}
		q.Push(keys[i])
	}
	return &q, keys
}

// step goes through n places in an order that is not theirs.
const step = 7919

func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1000, 16_000, 100_000} {
		q, keys := waiting(n)
		each := func(name string, act func(Key)) {
			b.Run(fmt.Sprintf("%s/waiting=%d", name, n), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					act(keys[i*step%n])
				}
			})
		}
		each("remove and push", func(k Key) { q.Remove(k); q.Push(k) })
		each("position", func(k Key) { q.Position(k) })
	}
}
