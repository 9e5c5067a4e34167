// Package gang measures how long a gang over many hosts takes, from its
// submission to the acknowledgement, beside the floor under it: one round trip
// to the slowest agent and one commit. It has benchmarks alone; that a gang is
// one Txn is test/failpoints' to hold.
package gang
