// Package coordinator is the thin half of Muster. A coordinator is elected, loads
// the store into a leader, and carries out the leader's decisions (docs/DESIGN.md,
// section 5). A coordinator owns no durable state: kill it, start another, nothing
// is lost.
//
// Package lead decides: its Leader takes inputs and leaves effects. This package is
// the shell of the leader. One goroutine per term owns the leader.
//
// Where things are:
//
//   - a coordinator, its terms and their beginning: coordinator, term, load,
//     wentback (a store that was restored);
//   - the loop of a term: loop (inputs and passes), carry (effects), hear (messages
//     of agents), committer (writes, over lead/batch), barrier;
//   - requests of clients: service and service_*, create, drain, fence,
//     reconcile, explain;
//   - agents: targets (addresses to dial), news, violation, ban, fences;
//   - followers, and reads from any coordinator: follow and follow_*, where;
//   - operators: queries (over gossip), metrics, census, housekeeping.
package coordinator
