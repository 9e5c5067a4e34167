// Package cost counts the work of Muster in figures that do not depend on the
// machine's speed: allocations and bytes of the heap for each step of an allocation,
// Txns, keys, messages and decoded records for the life of an allocation, and the work of
// the leader for a trace of jobs. Its tests hold the figures to figures.txt (test/ratchet),
// from which docs/benchmarks.md has its table. The package judges no time: benchmarks
// measure times.
//
// Counts of the heap hold for a version of Go and an architecture. They are the least of
// some runs on one processor without garbage collection, because the growth of a map or
// of a pool depends on the random seeds of hashes.
package cost
