// Package coordinator is the thin half of Muster: it is elected, rebuilds its
// view from the store, orders and places units, and drives their transactions
// against the agents (DESIGN.md section 5). It owns no durable state: kill it,
// start another, nothing is lost.
//
// A term's decisions are those of a lead.Leader, a value that package
// coordinator/lead describes. This package is the leader's shell: one goroutine
// per term owns the leader, hands it inputs one at a time and carries out its
// effects. Durable state is in the store alone.
//
// Where things are:
//
//   - a coordinator, its campaigns and terms: coordinator, config, term, load,
//     wentback, housekeeping (the configured quotas);
//   - the loop of a term: loop, hear (agents' messages in fair shares), carry
//     (effects), news (registrations and conditions from the store's cache),
//     targets (the agents to dial);
//   - writes: committer (the I/O of lead/batch), barrier (reads after writes);
//   - nodes: leader_refused (agents that have seen a higher epoch), violation (a
//     message that ended a term);
//   - clients' requests, which wait for the leader's answer: service and service_*,
//     change, drain, ban, fence, fences, node_delete, reconcile, explain;
//   - followers, and reads from any coordinator: the packages follow and objects, where;
//   - answers to operators and monitoring: queries, metrics.
package coordinator
