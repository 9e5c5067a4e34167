// Package invariant holds the invariants I1 to I14, I17 and I18 of PROTOCOL.md
// section 2 once, for every harness that runs a whole cluster. It decides what each of them means
// for the changes of the store, the grants of agents and the workloads of hosts.
// It does not run anything, and knows neither a leader's memory nor a clock.
//
// # How a harness uses it
//
// A [Checker] takes what a harness knows, in the order in which it happens:
//
//   - the store's changes, revision by revision: [Checker.Apply] takes decoded
//     changes, [Decode] reads them from a watched batch, [Checker.Load] takes a
//     whole content for a look at rest;
//   - hosts as they are now, with the agent's grants and with what runs there:
//     [Checker.Observe]. [Checker.Moment] then compares store and hosts, for a
//     harness that can stop both at one moment, and [Checker.Quiet] once all is
//     at rest;
//   - facts: answers to clients ([Checker.Told], [Checker.CommitTold],
//     [Checker.Judge]) and what clients asked for ([Checker.Demanded],
//     [Checker.EndAsked], [Checker.EvictionAsked]); limits that are configured
//     ([Checker.Limit]) or that a leader admits under ([Checker.Admitted]); a
//     transaction that is adopted ([Checker.Adopted]); a
//     store that is restored ([Checker.Mark], [Checker.Restore]); a host that lies
//     ([Checker.LeaveOut]), has lost records ([Checker.Lost]) or restarts
//     ([Checker.Restarted]). Deaths that an operator confirms are changes of
//     identities.
//
// Each call returns the violations that it shows, as values: the rule, the
// objects, the amounts that were compared, and one sentence.
//
// # Who checks what
//
// Each invariant is one rule or several; [Rules] says in words what each demands
// and which [Facts] it needs. A harness says which facts it gives ([Sim], [Rig],
// [Cluster]). A rule whose facts a harness does not give is not checked there,
// and this table, which a test compares with the code, names the missing facts:
//
//	rule             sim           rig                     cluster, chaos, histories
//	I1 records       yes           yes                     yes
//	I1 hardware      yes           yes                     no hardware
//	I1 ledger        yes           no moments              no moments
//	I1 grants        yes           yes                     no assignments
//	I1 workloads     yes           no workloads            no workloads
//	I2 configured    yes           yes                     yes
//	I2 quotas        yes           yes                     yes
//	I2 admissions    yes           no admissions           no admissions
//	I2 trees         yes           yes                     yes
//	I3 incarnations  yes           yes                     yes
//	I3 members       yes           yes                     yes
//	I3 demand        yes           no demands              no demands
//	I3 protected     yes           no moments              no moments, assignments
//	I3 launch        yes           no workloads            no workloads
//	I4 told          yes           no clients              no clients
//	I4 committed     yes           no clients              no clients
//	I4 asked         yes           no wishes               no wishes
//	I4 history       no histories  no histories            yes
//	I5 freed         yes           no moments              no moments, words
//	I6 unit          yes           yes                     yes
//	I7 victims       yes           yes                     yes
//	I7 asked         yes           no wishes               no wishes
//	I7 waiting       yes           no moments, nominations no moments, nominations
//	I7 nominated     yes           no moments              no moments
//	I7 undecided     yes           yes                     yes
//	I8 freed         no messages   yes                     no messages
//	I8 stopped       yes           no workloads            no workloads
//	I9 replay        yes           no replays              no replays
//	I10 word         yes           yes                     no words
//	I10 workloads    yes           no workloads            no workloads
//	I10 held         yes           no moments              no moments
//	I10 lost         yes           yes                     yes
//	I11 edges        yes           yes                     yes
//	I11 deleted      yes           yes                     yes
//	I11 again        yes           yes                     yes
//	I11 swap         yes           yes                     yes
//	I11 named        yes           yes                     yes
//	I12 commits      yes           yes                     yes
//	I12 writers      yes           yes                     no writers
//	I12 commands     yes           no commands             no commands
//	I12 promises     no messages   yes                     no messages
//	I13 index        yes           yes                     yes
//	I13 records      yes           yes                     yes
//	I13 grants       yes           yes                     yes
//	I13 devices      yes           yes                     no assignments
//	I13 units        yes           yes                     yes
//	I14 tenants      no principals no principals           no principals
//	I17 group        yes           yes                     yes
//	I18 replacement  yes           yes                     yes
//	names attempts   no messages   yes                     no messages
//	quarantine kept  yes           no commands             no commands
//	alarm raised     yes           no commands             no commands
//
// What reads a leader's memory stays with its harness: test/sim compares the
// leader's units and its view of each node with store and ledgers
// (checkKnowledge), test/rig compares what the leader's API shows (checkLeader). Both
// have decisions.Checker read each coordinator's log for I7.
//
// # Exceptions
//
//   - A node that lies (LeaveOut) is excused in what its own agent holds, runs and
//     says. I2, I4, I6, I11 but for what is revived, the writers of I12, the index
//     and every other member of the same record have no exception.
//   - A limit that is lowered ends nothing and lets pass what was under way: a
//     quota is held to the highest that it was, an attempt to the limit that it
//     was admitted under. A quota that is younger than its namespace's records is
//     not checked at all.
//   - What an operator adopts (Adopted) runs already and is charged whatever there
//     is: it is left out of the sums. All others have to fit without it. It starts no
//     group, of which the others may have ended.
//   - Of a quota tree the root and the nodes that were always hard are checked,
//     unless the tree's shape has changed: below them nobody's record says where
//     a unit is counted. Where there are trees a claim of quota may name victims
//     of any priority, unless the harness says that there are no claims.
//   - After a restored store (Restore) transactions that the backup does not have
//     may start again (Gone), records that it lists again may be held by nobody
//     (Back), and alarms, commits of older epochs and missing words of I10 are
//     expected. A transaction that had ended before the backup may be adopted where
//     every member's host holds it again: a disk has lost the end, or the agent lies
//     (revived). A harness that begins with a new Checker instead says
//     ExpectAdoptions, which excuses commits of older epochs alone.
package invariant
