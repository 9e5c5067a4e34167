package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// roomyMemory is the memory, in bytes, that the program may take for the sake of
	// time: below it the heap grows to five times the live objects (gcPercent).
	roomyMemory = 384 << 20
	// mostOfLive bounds the memory beyond that: it is at most so many times the live
	// objects, so that a flood that fills the heap does not take five times as much.
	mostOfLive = 2
	// memoryLook is the time between two looks at the live objects. Until the next look
	// the collector keeps to the limit of the look before.
	memoryLook = time.Second
)

// memoryLimit is the soft limit of the program's memory where the heap has so many bytes
// of live objects.
func memoryLimit(live uint64) int64 {
	const most = 1 << 46 // of any machine
	return max(roomyMemory, mostOfLive*int64(min(live, most)))
}

// limitMemory sets the soft limit of the memory by the live objects until the context
// ends.
func limitMemory(ctx context.Context) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	look := time.NewTicker(memoryLook)
	defer look.Stop()
	for {
		metrics.Read(sample)
		debug.SetMemoryLimit(memoryLimit(sample[0].Value.Uint64()))
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}
