package shim

import "runtime/debug"

// boundHeap makes collections of garbage come early: a shim has a heap of a few hundred
// kB, and a host has many shims. There is no memory limit: one below what the runtime
// itself takes makes it collect without pause (with 4 MiB a shim took 560 ms of
// processor time, BenchmarkShim; without a limit 15 ms, and the same memory).
func boundHeap() { debug.SetGCPercent(20) }
