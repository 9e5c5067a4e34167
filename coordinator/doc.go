// Package coordinator is the thin half of Muster: it is elected, rebuilds its
// view from the store, orders and places units, and drives their transactions
// against the agents (DESIGN.md section 5). It owns no durable state: kill it,
// start another, nothing is lost.
//
// One goroutine per term owns the view (leader). What is decided is decided in
// the packages below it: place, queue, quota, preempt, txn; what is durable is
// the store's. Everything else here carries questions to that goroutine, and
// answers out of it.
//
// Where things are:
//
//   - a coordinator, its terms and what each begins with: coordinator, term,
//     leader, load, wentback;
//   - units: unit, unit_phase, unit_table (phases), unit_wait, lifecycle, job;
//   - the order, admission and placement: schedule, charge, shortage;
//     quotas, quota_change, trend;
//   - transactions: attempt, perform (effects), writes (Txns), committer (batches),
//     outcome (answers that were lost), housekeeping (records that are done);
//   - preemption: nominate, evict, displace, adopt, drain;
//   - nodes: node, node_facts, hold, events (what agents say), mirror, news,
//     targets (whom to dial), ban, fence, assume_dead, quarantine, reconcile, node_delete;
//   - labels, taints, approval of growth: admit, change;
//   - agents that lie, hang or flood (ADR 13): judge, violation, hear, breaker,
//     bucket;
//   - followers, and reads from any coordinator: follow, barrier, where;
//   - what people ask and see: service, create, show (what the leader gives to
//     package shown, which renders it), explain, present, queries, account (the
//     decision log).
package coordinator
