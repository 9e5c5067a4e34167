// Package cluster is the state that scheduling reads: the nodes, the amounts
// that are free on them, and the units that occupy them. It chooses no node, charges no quota and talks to no
// agent.
//
// The State is changed in place and never copied. A decision that only tries
// something opens a checkpoint, takes and gives as if it were done, and rolls back:
// the State's journal has the inverse of every change since the checkpoint.
//
// Pure: no clock, no I/O, integers only. One goroutine uses a State.
package cluster
