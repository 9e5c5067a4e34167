// Package alone drives the leader of a term (coordinator/lead) without a
// coordinator: a store in memory and agents of real ledgers answer each effect at
// once, and time is what the caller says. A Cluster is for traces in virtual time
// and for benchmarks of the leader; it judges nothing. An Agent serves other
// harnesses too.
//
// There are no goroutines. One goroutine uses a Cluster.
package alone
