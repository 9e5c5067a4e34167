// Package lead is the leader of a term as a value. A Leader decides when and where
// units run, who gives way, what agents are told and what the store is asked to
// write. A Leader decides nothing about elections, connections, retries of the
// store's calls, or how objects are rendered; and it reads no clock, starts no
// goroutine and calls nobody.
//
// The shell (package coordinator) hands a Leader its inputs and carries out the
// effects of each in their order: NewLeader, Load, then Apply for each input, and
// Pass to try what waits. A question that needs an answer from outside carries a
// Token, which comes back with the answer in a later input. Nonces and uids are
// drawn from the Beginning's seed. The same Beginning and inputs at the same times
// therefore leave the same effects, byte for byte; no order of a map reaches an
// effect. Inputs, requests and effects are immutable once they are handed over.
//
// Between two inputs the shell may read what accessors.go offers, and nothing
// else; reading changes nothing.
//
// A Pass makes a bounded number of trials. Busy reports whether the next one has
// something to do at once.
//
// Where things are:
//
//   - the value and its borders: leader (state), input, request (clients' calls),
//     effect, alarm (what is done later), accessors, load and load_records (the
//     beginning of a term), rules and limits (configuration), view;
//   - requests: request_units, request_patch, request_nodes, request_quota,
//     request_objects (kinds that package lead/edit judges), request_explain, and
//     service_* for the parts that a kind of object needs;
//   - units: unit, unit_phase, unit_table (phases and their steps), unit_wait,
//     lifecycle, job, suspend (units that
//     their owner keeps from running), parallelism (more and fewer units), create, census (how much a namespace has stored), requests
//     (request ids that are known);
//   - the order, admission and placement: room (units enter the room of the waiting,
//     trials of a pass), wake (the events that wake classes), schedule, charge,
//     shortage, quotas, quota_load, quota_change;
//   - transactions: attempt, perform (a machine's effects), writes (what is
//     written), outcome (answers that were lost), housekeeping (records that are
//     done);
//   - preemption: nominate, occupy, displace, evict, adopt (preemptions of earlier
//     leaders);
//   - nodes: node, node_facts, reservation (who has what), retired (records that are done), events (what agents say),
//     mirror, change (what operators set), admit (approval of growth), ban,
//     quarantine, leader_refused (agents that have seen a higher epoch),
//     node_delete, and fence, fence_death, fences, assume_dead;
//   - reconciliation with agents after a store was restored: reconcile,
//     reconcile_look, reconcile_adopt, reconcile_release, reconcile_report,
//     wentback;
//   - agents that lie, hang or flood (ADR 13): judge, violation, breaker;
//   - what people see: show, show_node, show_unit, explain, account (the
//     decision log).
//
// How the store's writes share Txns is decided in lead/batch. Changes of tenants,
// namespaces, forests and bindings are judged in lead/edit. Transcripts in
// testdata/transcripts tell what a leader does, story by story.
package lead
