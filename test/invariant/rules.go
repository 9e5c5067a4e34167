package invariant

// Demand is one rule, the facts without which it is not checked, and the rule in
// words.
type Demand struct {
	Rule  Rule
	Needs Facts
	Says  string
}

// Rules are all rules, in the order of the invariants.
func Rules() []Demand {
	return []Demand{
		{I1Records, Changes, "shares of a device or CPU in COMMITTED records sum to one at most; a MIG instance is in one"},
		{I1Hardware, Changes | Hardware, "a COMMITTED record gives each node's members devices of that node alone"},
		{I1Ledger, Moments, "each ledger passes its own check"},
		{I1Grants, Rest | Assignments, "shares of a device or CPU in the grants of an agent that hold sum to one at most; a MIG instance is in one"},
		{I1Workloads, Workloads, "no device is used by two workloads, or by one and what another has left behind"},
		{I2Configured, Changes | Quotas, "no namespace is charged more than the limit that was configured"},
		{I2Quotas, Changes | Quotas, "no namespace is charged more than a resource quota ever allowed that is older than the namespace's records"},
		{I2Admissions, Changes | Admissions, "no namespace is charged more, up to an attempt, than the limit under which that was admitted"},
		{I2Trees, Changes | Quotas, "the root and hard nodes of a tree are charged at most their highest quota; a tree that is charged stays"},
		{I3Incarnations, Changes, "a commit counts on the registered, unfenced incarnation of every member's agent"},
		{I3Members, Changes, "a COMMITTED record has every member of its unit once"},
		{I3Demand, Changes | Demands, "a COMMITTED record has the members, and each has the devices, that the client asked for"},
		{I3Protected, Changes | Moments | Assignments, "every member of a COMMITTED record is RESERVED, HELD or EVICTING on its agent, with the same assignment"},
		{I3Launch, Changes | Workloads, "no workload starts before its record is COMMITTED"},
		{I4Told, Changes | Clients, "a unit that its client was told of, and has not ended, is Pending, Running in a COMMITTED record, or evicted"},
		{I4Committed, Changes | Clients, "a commit that is acknowledged is in the store"},
		{I4Asked, Changes | Wishes, "a COMMITTED record becomes RELEASING only where its client asked for the end"},
		{I4History, Changes | Histories, "what the answers to a client said of a name, and what is there at the end, agree"},
		{I5Freed, Changes | Moments | Words, "what an agent has freed it does not hold again, but as a new promise after the record has ended"},
		{I6Unit, Changes, "a unit, by UID and by name, has one live record, and a record names the unit of its transaction"},
		{I7Victims, Changes, "a record becomes EVICTING for a preemptor without a record and, where no tree may name victims, of higher priority"},
		{I7Asked, Changes | Wishes, "a record becomes EVICTING for nobody only where somebody has asked for it"},
		{I7Waiting, Changes | Moments | Nominations, "when victims become EVICTING the preemptor is WAITING or RESERVED in every member's registered incarnation"},
		{I7Nominated, Changes | Moments, "no commit uses a device that an agent keeps for another, undecided transaction"},
		{I7Undecided, Changes, "while a preemptor is undecided the records of its victims stay EVICTING for it"},
		{I8Freed, Changes | Messages, "an agent frees a victim no sooner after EVICTING than the grace that it was told"},
		{I8Stopped, Workloads, "a workload is stopped after a notice, and by force after the promised grace on the host's clock"},
		{I9Replay, Replays, "a ledger that is replayed is what it was when its process was killed"},
		{I10Word, Changes | Words, "a charge ends after every member's agent has freed its part, or its node is fenced and confirmed dead"},
		{I10Workloads, Changes | Workloads, "nothing of a RELEASED record or of a tombstone runs"},
		{I10Held, Changes | Moments, "no agent holds a part of a record that becomes RELEASED"},
		{I10Lost, Changes, "a COMMITTED record loses members only on nodes that are fenced and confirmed dead, all that are there, with their charge, and each has a unit that replaces it"},
		{I11Edges, Changes, "records take only the edges of PROTOCOL.md section 1"},
		{I11Deleted, Changes, "only RELEASED and ABORTED records are deleted"},
		{I11Again, Changes, "a transaction whose record was collected is COMMITTED only where an operator adopts grants that were revived"},
		{I11Swap, Changes, "EVICTING becomes RELEASED only in the revision that commits the preemptor"},
		{I11Named, Changes, "no record is deleted that the live record of a victim names as its preemptor"},
		{I12Commits, Changes, "a record is COMMITTED in the epoch that leads in that revision"},
		{I12Writers, Changes | Writers, "a leader's Txn takes effect only while its epoch leads"},
		{I12Commands, Commands, "a command of an epoch older than the ledger's changes nothing"},
		{I12Promises, Messages, "an agent that has let an epoch in promises nothing new to an older one"},
		{I13Index, Changes, "the nodes' indices name the members of every charged record, and nothing else"},
		{I13Records, Changes | Rest, "at rest every charged record is COMMITTED"},
		{I13Grants, Changes | Rest, "at rest the grants of agents are HELD, and are the members of COMMITTED records with the same devices"},
		{I13Devices, Changes | Rest | Assignments, "at rest each grant has its record's whole assignment"},
		{I13Units, Changes | Rest, "at rest each unit is Running in its COMMITTED record, or Pending and in the order once, or ended"},
		{I14Tenants, Principals, "a principal sees and changes only what is its own: test/identity, test/hostile and coordinator/rest check it"},
		{I17Group, Changes, "the first commit of a group commits at least minMembers of its members in one revision"},
		{I18Replacement, Changes, "a unit that replaces a lost member is committed only while the record of its gang is COMMITTED without the member"},
		{NamesAttempts, Messages, "an attempt's epoch and counter name one transaction, of an epoch not above the leader's"},
		{QuarantineKept, Commands, "an agent that reads a store older than it knew goes into quarantine, and changes no grant there"},
		{AlarmRaised, Commands, "no ledger raises an alarm, unless its host has lost records or the store was restored"},
	}
}
