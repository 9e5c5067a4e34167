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
// Files stand in layers, and the lower ones do not call the upper ones (ADR 79):
//
//   - the value and its borders: leader (state), view, input, tokens (questions to the
//     store), request (clients' calls), effect, alarm (what is done later), accessors,
//     load and load_records (the beginning of a term), rules and limits (configuration);
//   - knowledge: lead/work (units, jobs, groups, attempts and their register), lead/hosts (reports
//     of agents), node, node_facts, node_state, reservation (holders of devices), observed;
//     retired (records without further use), occupancy_news;
//   - what is read from that: queue_standing, snapshot, occupy, show, show_node,
//     show_unit, explain, fate, never (work that can never run), waiting, account (the
//     decision log), namespaces, declared, resource_names;
//   - what is written beside the decisions: outcome (answers that were lost), seats,
//     waiting_write, observe, lost_keys, requests (request ids that are
//     known), finished (what is removed some time after its end), housekeeping;
//   - the circle of decisions, in which each step may call each other: room (units enter
//     the room of the waiting, trials of a pass), schedule, form, group_start, company,
//     perform (a machine's effects), writes (what is written), nominate, displace, evict,
//     adopt (preemptions of earlier leaders), lifecycle, life, start_by, time_limit,
//     dependency, queues, suspend, parallelism, job_change, request_patch, work, ready, fence,
//     fence_death, breaker, device_lost;
//   - above it: requests of clients (request_*, service_*), events (what agents say),
//     create, charge, wake (the events that wake classes), change (what operators
//     set), admit (approval of growth), ban, fences, assume_dead, node_delete, violation
//     and judge (agents that lie, ADR 13), leader_refused (agents that have seen a higher
//     epoch), wentback, and reconcile_* (agents after a store was restored).
//
// Lead/post has effects, alarms and the author of a change, lead/desk the calls of clients, and
// lead/batch decides the sharing of Txns. Lead/edit judges changes of tenants, namespaces, forests
// and bindings. The quota objects and the charges are the book of lead/charges, and lead/form
// translates specifications. Transcripts in testdata/transcripts show a leader, story by story.
package lead
