package shim

import "runtime/debug"

// heap bounds the heap of a shim, in bytes; a collection that comes often costs little
// on a heap of a few hundred kB.
const heap = 4 << 20

func boundHeap() {
	debug.SetGCPercent(20)
	debug.SetMemoryLimit(heap)
}
