// Package quota decides whether a consumer may be charged to a group, on which
// node of a quota tree it is then counted, and who has to give way. It does
// not store anything, place anything on machines, stop anybody or know who
// asks: effects come back as values.
//
// # The model
//
// A tree of nodes has a quota per resource on every node. A consumer belongs
// to a leaf, its group, and is counted on one node of the path from there to
// the root, its allocation node, and on everything above. On its group it is
// an owner. Higher up it is a sharer: it borrows what the subtree's other
// groups leave unused, until an owner claims it back. No node's usage exceeds
// its quota unless it was forced there.
//
//   - Allocate climbs from the group. Where the consumer does not fit, sharers
//     of lower priority are pushed one node up; still not: it borrows from the
//     parent. Once it has found a node it owns that node's quota, and higher up
//     any sharer gives way, at the root by eviction. A hard node neither
//     borrows nor lets its sharers be pushed up.
//   - If that fails and its priority is above 0, consumers of lower priority
//     on its own path are evicted, from the node that refused downwards.
//   - A refusal changes nothing, the order of consumers included.
//   - Deallocate lets sharers slide down into what became free.
//   - A forest is trees that are allocated together, on all or on none.
//
// Only priorities above 0 evict by priority. Negative ones are allowed: they
// give way to 0 where it claims what is its own.
//
// # Determinism
//
// A Manager has no clock, no lock, no randomness and does no I/O; the same
// calls in the same order lead to the same state, byte for byte (AppendState).
// One goroutine owns it.
//
// # What if
//
// Between Checkpoint and Rollback a caller may allocate, release and restore at
// will: Rollback leaves everything as if none of it had been. Checkpoints nest.
//
// # Cost
//
// A call costs the depth of the tree, the logarithm of what waits there, and
// the number of consumers that move; how many live does not matter. (A search
// among sharers of very different requests that wait for one node looks at
// those it cannot rule out together, see waiting.go.) Allocate and Deallocate
// of a known consumer allocate no memory in the steady state.
//
// Limits, the one-level quotas of namespaces, stand beside the trees.
package quota
