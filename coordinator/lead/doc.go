// Package lead decides for a coordinator while it leads: which units are placed
// where, which units end for others, and which records, commands and answers follow
// from each event. Package coordinator carries the effects out.
//
// A Leader is a value (docs/adr/0017-leader-as-a-value.md). It reads no clock, does
// no I/O, starts no goroutine and writes no log. Where things are:
//
//   - inputs and effects: input, request and request_*, effect, alarm; reads
//     between inputs: show and show_*, present, accessors;
//   - the beginning of a term: leader, load, load_records, view;
//   - units: unit, unit_phase, unit_table (phases), unit_wait, lifecycle, job;
//   - the order, admission and placement: schedule, charge, quotas, shortage;
//   - transactions: attempt, perform, writes, outcome, housekeeping;
//   - preemption: nominate, evict, displace, adopt;
//   - nodes: node, node_facts, reservation, events, mirror, ban, fence, fence_death,
//     assume_dead, quarantine, reconcile and reconcile_*, node_delete;
//   - labels and approval of growth: admit, change;
//   - agents that break the protocol, hang or flood (ADR 13): judge, violation,
//     breaker.
package lead
