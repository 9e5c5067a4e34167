// Package gpuallocator holds package fit against the best-effort policy of
// github.com/NVIDIA/go-gpuallocator, with which NVIDIA's device plugin prefers
// GPUs: whose choice is better connected by that library's own pair scores, on
// its own topologies, and how long each takes. It decides nothing and has only
// tests and benchmarks; its module keeps the library out of Muster's go.mod.
package gpuallocator
