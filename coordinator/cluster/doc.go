// Package cluster is the state that scheduling reads: the nodes, the amounts
// that are free on them, and the units that occupy them. It chooses no node, charges no quota and talks to no
// agent.
//
// The State is changed in place and never copied. A decision that only tries
// something opens a checkpoint, takes and gives as if it were done, and rolls back:
// the State's journal has the inverse of every change since the checkpoint.
//
// The State finds nodes without a look at each: Peers are the open nodes that differ
// in no sum, flag or taint, and Labelled has the nodes with a label.
//
// Pure: no clock, no I/O, integers only. One goroutine uses a State.
package cluster
