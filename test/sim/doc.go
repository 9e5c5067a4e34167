// Package sim runs a whole cluster in one goroutine: three hosts, two
// coordinators, one store and some clients, while machines reboot, disks fail,
// leaders are deposed and messages are late. The package decides nothing itself: it
// shows whether what the decision code decides keeps the invariants of
// PROTOCOL.md section 2. A seed decides everything, each step is one thing that can happen, and
// a failing seed prints what happened (make sim SEED=n).
//
// # What is real
//
// The leader: coordinator/lead, with all that it decides by, and lead/batch, which decides what
// shares a Txn and what becomes of it. term hands the leader inputs (what agents say, what
// became of writes and reads, alarms, requests of clients and operators, what the coordinator
// follows of the store) and carries out its effects. agent/ledger with its codec (each journal
// is replayed through it), coordinator/record's keys and values, decisions.Checker, and fit.
//
// # What is expressed again
//
// As short as may be, and to be kept in step by hand: the coordinator's loop, the committer's
// and the pool's around the leader and the batcher (term, committer, hear: coordinator/{carry,
// loop, committer}.go and coordinator/agents); what coordinators do for agents (calls:
// coordinator/rpc); the owner's loop of the agent (agent: one command is one group); the
// election (candidates' keys). Clients ask for jobs of one gang of equal members and, where
// nothing is evicted, for allocations too. They name one of three queues and one of three
// namespaces. There is one quota tree, with a hard and a borrowing group. Two namespaces have a
// limit, the third has none, and its group is configured.
//
// At the end of each run the objects that the leader shows are compared with those that
// coordinator/objects makes of the keys alone, the use of the quota tree included.
//
// # What is simulated
//
//   - The store is linearizable. A Txn may be lost, land without its answer, land much later, or
//     be refused for want of space; answers come in any order.
//
//     A write of status, which only readers need, lands at once and takes no step.
//
//   - Streams are in order until they break, and then part of what was on its way still arrives.
//     Commands and answers come twice; commands come again long after; anything may stall.
//
//   - A process that is killed leaves its journal in the page cache; a machine that stops loses
//     what was not synced, with or without a torn record; an append is cut short; a sync fails
//     and its records are dropped; a disk is wiped, or loses synced records and the journal
//     notices. Workloads go on when agents end, and stop when machines do.
//
//   - Candidates lose their leases at any moment; a deposed leader goes on until it notices. A
//     leader's clock jumps ahead to the next alarm at any moment.
//
//   - Agents' boot-time clocks run up to a tenth fast or slow, step ahead, and start anew at a
//     boot. Leaders compare no times at all.
//
//   - Cards vanish and come (Ledger.Rehost), devices fall ill, nodes are cordoned, limits are
//     raised and lowered, terminal records are collected.
//
//   - In two of three runs units may be evicted: by an operator, or for one of higher priority;
//     some units evict nobody, and some only take back their quota. Quota is twice as much there,
//     so that places run out too. Leaders end while victims leave, more often than otherwise
//     (preemption), and machines while a preemption is about to evict. What was evicted waits
//     anew, as a job's unit does.
//
//   - In a half of those runs quota is not twice as much: units claim it back from those that
//     have borrowed it, in most runs not before these have run for a while
//     (quota.Options.MinRunTime).
//
//   - Heartbeats name the devices that are gone while a grant holds them. In a third of all runs
//     units with such a device are evicted, else they keep the device (lost_devices).
//
//   - In one run of three the store goes back to a backup, once (restore). For that coordinators
//     are stopped, and nothing of before is on its way any more; agents and workloads go on. From
//     then on agents audit now and then, and an operator asks the leader to reconcile them
//     (operator): to adopt what the store has lost, or to release it. What the store lists though
//     no agent holds it any more, he ends.
//
//   - In one run of two machines are switched off, and on again much later; agents keep leases,
//     which end; an operator fences nodes, by force or once their lease is over, and confirms
//     deaths: only of a machine that is off when the store is asked who is registered there
//     (power, fence). Records are kept until the dead have told of themselves.
//
//   - In one run of three processes outlive their workload, and disks fail under what the store
//     has lost too; agents look now and then at what runs, and make orphans of devices (orphans).
//
//   - In one run of three the agent of one host lies: votes, occupancies, registrations and
//     epochs are false, answers come late, twice and about other transactions (liars). The leader
//     judges votes, isolates the liar, and an operator lets it back, to lie again.
//
//   - In one run of three clients change what they have submitted: they suspend it and let it go
//     on, move it to another queue, and give a job members beyond its gang, or take them back
//     (edits).
//
//   - In one run of three units have rules about others: apart on hosts or together in a rack,
//     spread, or better apart (rules; two of the three hosts are in one rack); or an alternative
//     to their request, with another number of devices (alternatives); or gangs have to run in
//     one rack (domains); or the last member of a gang asks for other amounts (sets); or an
//     operator raises and lowers the limits of the quota tree (edits); or the mode of the trees
//     changes (quotas). Each is drawn alone.
//
//   - In one run of two an operator changes the rules of queues: Hold, Strict, a bound of the
//     members that run (lines); or some gangs of one rack have subgroups, each in one rack, in
//     place of all members, and those of groups have names (subgroups); or most gangs go on
//     without members whose nodes are confirmed dead (heals), where nodes are.
//
// Each of these parts is drawn by the seed alone (Parts), so that a seed with some of them only
// (Options.Only) stays what it is when others are added. All of them come together.
//
// # Invariants
//
// test/invariant holds them. observe.go shows it every revision of the store, and
// every host after each step and at each revision; facts.go tells it what a leader
// and its clients know. check runs after every step, checkI13 at the end: faults
// have ended, two TTLs have passed on the slowest clock, and the leader has asked
// each agent for everything once. These stay here:
//
//   - I7: decisions.Checker reads each coordinator's log as it is written (account);
//   - units: lead.Leader.Check, after each input;
//   - I13: checkKnowledge compares what the leader knows with the store and the ledgers: every
//     unit runs, or waits with a reason;
//   - queues: after each pass no unit may be tried that a rule of its queue holds back;
//   - rules: no two units run on a host whose required anti-affinity forbids it, and no gang that
//     has to run in one rack runs in two;
//   - checkDisjoint: decisions that share a Txn write different keys;
//   - isolateLiar: nobody else is taken for a liar.
//
// checkWaiting looks for lost wake-ups ("wake", lead.Leader.Overlooked): after each
// pass of a leader over its queue, and before the last resync, every unit that waits
// for room, or for its quota, is tried on the state as it is, and has to fail.
//
// In runs with a liar all of them hold for everybody else; liars.go lists the clauses that leave
// the liar's own host out. "I3 demand", for the liar's host too, demands that a COMMITTED record
// is what its client asked for.
//
// I2 knows no escrow, and I14 is about principals, of which there are none. Priorities are
// raised by nobody, as no coordinator does it; the compare that stands ready for it is the
// model's.
//
// While the rest comes to its end, backoffs take time where units are evicted: an agent that has
// missed an Abort keeps what it promised until its TTL, and refuses the next attempt with the
// same victims until then. Two units may claim quota back from each other in turn, without end:
// a client whose unit is evicted again and again ends it then (tire).
//
// # After a restored store
//
// What the restore itself has lost is restated, no more than this:
//
//   - What clients and checks knew of records is what the backup knew: a client whose unit is not
//     in it was told of nothing.
//   - I3: a transaction that was live and is not in the backup (gone) may start again where its
//     agent holds it. I1, I3 and I5 do not count records that the backup lists as live though
//     they had ended or were ending (back): their devices may be somebody else's by now.
//   - I10: an agent that registers under a new incarnation only when the store has grown beyond
//     what it had heard of cannot tell (blind): such a lost grant gives way to a record with its
//     devices (ADR 7), running or not.
//   - I11: a grant whose end its host's disk had lost before the restore, or that a liar has
//     kept, looks like one whose record is lost. An operator who adopts makes its record
//     COMMITTED once more.
//   - What the store and a host's disk have both lost is known to nobody: disks do not fail while
//     they hold something lost, and workloads that their own journal had forgotten before are not
//     counted.
//   - Alarms are expected.
//
// In return: an agent that reads a revision below what it had heard of goes into quarantine;
// there nothing of what it holds changes, over restarts too, until it is reconciled ("quarantine
// kept"); and at the end no agent is in quarantine, and grants and live records are the same
// again (checkI13).
//
// # After a death
//
// A workload is started, or started anew, by a process that has seen its record COMMITTED
// itself: that of a node that was dead may be RELEASED by now, and its unit run elsewhere.
//
// # What it cannot see
//
// Mistakes in the loops around the leader, which are expressed again: they are test/rig's, with
// real loops in fake time. A process that begins between two looks and outlives its grant.
//
// Bug lists mistakes that are planted outside of the leader: its inputs and its effects are
// falsified (planted), or what is expressed again is wrong. Mistakes in the leader's own memory
// cannot be planted so (a wake-up left out, a vote that is not judged, a charge dropped): those
// are test/mutate's, which changes its code. Seeds that have found mistakes in the real code are
// pinned in the tests.
package sim
