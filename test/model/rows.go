package main

// search is one complete search of a model, and what it must find.
type search struct {
	model   string   // file of this folder, without .pml
	conf    string   // number of the configuration, or ""
	defines []string // further macros, NAME=value
	mutant  string   // the rule that is dropped, or "" for none
	reach   bool     // look for the far end instead
	want    string   // holds, reach, or the invariant that must break
	what    string
	short   bool // also part of the Go tests; at most 250,000 states
	bits    int  // log2 of the hash table's slots; 0 is 22
}

// holds and reached are verdicts; the others are names of invariants.
const (
	holds   = "holds"
	reached = "reach"
)

// complete are the configurations of `make model`: each is searched completely
// and its far end must be reachable.
var complete = []search{
	{model: "muster", conf: "3", what: "victim, preemptor gang, third; 1 OS crash"},
	{model: "muster", conf: "1", what: "two gangs; 2 epochs, 2 OS crashes"},
	{model: "muster", conf: "2", what: "quota only; 3 epochs, 1 OS crash"},
	{model: "muster", conf: "4", what: "victim, preemptor gang, third; 2 epochs"},
	{model: "muster", conf: "8", what: "victim with a rising priority, preemptor gang; 2 epochs, 1 OS crash"},
	{model: "muster", conf: "5", what: "victim, preemptor gang; 2 epochs, 1 OS crash"},
	{model: "muster", conf: "9", what: "two gangs, records collected; 2 epochs, 1 OS crash"},
	{model: "muster", conf: "6", what: "two gangs, tombstones lost; 2 OS crashes", short: true},
	{model: "muster", conf: "7", what: "two gangs, processes seen; 2 epochs, 1 OS crash or wiped disk", short: true},
	{model: "muster", conf: "12", what: "two gangs, tombstones dropped, old reads; 2 epochs, 1 OS crash"},
	{model: "muster", conf: "13", what: "two gangs, 1 fence as dead, RELEASED collected; 2 epochs, 1 OS crash"},
	{model: "muster", conf: "10", what: "quota only, lowered once; 2 epochs"},
	{model: "muster", conf: "11", what: "two gangs, agents compare epochs; 2 epochs, 1 OS crash"},
	{model: "muster", conf: "14", what: "two gangs, stray processes; 2 epochs, 1 OS crash or wiped disk"},
	{model: "muster", conf: "15", what: "gang that loses a member on a dead node, its replacement; 2 epochs, 1 OS crash, 1 fence"},
	{model: "muster", conf: "17", what: "gang that loses a member, another unit, quota only; 2 epochs, 1 fence"},
	{model: "muster", conf: "16", what: "two transactions of a group; 2 epochs, 1 OS crash", short: true},
	{model: "restore", conf: "1", what: "backup, restore, reconciliation; 1 leader after it, 1 OS crash"},
	{model: "restore", conf: "2", what: "reconciliation by 2 leaders"},
	{model: "restore", conf: "3", what: "reconciliation while an agent does not notice; 1 OS crash"},
	{model: "restore", conf: "4", what: "reconciliation of a backup that no revision shows, and that is declared; 1 OS crash"},
	{model: "creation", what: "queued creations; 2 epochs, 4 Txns", short: true},
}

// mutants each drop one rule, which must break the invariant that the rule is
// there for.
var mutants = []search{
	{model: "muster", conf: "3", mutant: "PROMOTE_LATER", want: holds, what: "WAITING becomes RESERVED in a later append: harmless"},
	{model: "muster", conf: "1", mutant: "NO_INCARNATION_COMPARE", want: "I3", what: "commit does not compare incarnations", short: true},
	{model: "muster", conf: "1", mutant: "PROMISE_BEFORE_REGISTERING", want: "I1", what: "agent promises before it registers"},
	{model: "muster", conf: "1", mutant: "REJOIN_WITHOUT_READING", want: "I3", what: "agent rejoins without reading the records"},
	{model: "muster", conf: "1", mutant: "READ_BEFORE_REGISTERING", want: "I3", what: "agent reads the records, then registers"},
	{model: "muster", conf: "2", mutant: "NO_EPOCH_COMPARE", want: "I2", what: "commit does not compare the epoch", short: true},
	{model: "muster", conf: "4", mutant: "SWAP_WITHOUT_EPOCH", want: "I2", what: "commit-and-release does not compare the epoch"},
	{model: "muster", conf: "2", mutant: "SUM_BEFORE_ELECTION", want: "I2", what: "new leader sums before its election"},
	{model: "muster", conf: "2", mutant: "UNKNOWN_NOT_CHARGED", want: "I2", what: "Txn of unknown outcome not charged"},
	{model: "muster", conf: "2", mutant: "ABSENT_IS_AN_OUTCOME", want: "I2", what: "charge dropped when the record reads absent"},
	{model: "muster", conf: "1", mutant: "TTL_FREES_WITHOUT_FENCE", want: "I3", what: "reservation freed at TTL without a fence"},
	{model: "muster", conf: "1", mutant: "PARTIAL_VOTE", want: "I3", what: "commit on a partial vote"},
	{model: "muster", conf: "1", mutant: "ACK_BEFORE_COMMIT", want: "I4", what: "ack before the commit point"},
	{model: "muster", conf: "1", mutant: "END_BEFORE_FREED", want: "I10", what: "quota ended before the agents freed"},
	{model: "muster", conf: "1", mutant: "RELEASE_WITHOUT_STATE", want: "I5", what: "release does not compare the state"},
	{model: "muster", conf: "1", mutant: "NO_ABSENT_COMPARE", want: "I11", what: "commit does not compare record absent"},
	{model: "muster", conf: "5", mutant: "EVICT_BEFORE_ALL_WAIT", want: "I7", what: "eviction before all members wait"},
	{model: "muster", conf: "3", mutant: "WAITING_NOT_EXCLUSIVE", want: "I7", what: "WAITING is not exclusive"},
	{model: "muster", conf: "3", mutant: "EVICT_FOR_DECIDED", want: "I7", what: "eviction does not compare the preemptor absent"},
	{model: "muster", conf: "3", mutant: "EVICT_WITHOUT_INCARNATIONS", want: "I7", what: "eviction does not compare the incarnations"},
	{model: "muster", conf: "8", mutant: "EVICT_WITHOUT_PRIORITY", want: "I7", what: "eviction does not compare the victim's priority"},
	{model: "muster", conf: "3", mutant: "SWAP_BEFORE_FREED", want: "I10", what: "commit-and-release before all victims freed"},
	{model: "muster", conf: "5", mutant: "YES_FOR_WAITING", want: "I3", what: "Yes sent for WAITING"},
	{model: "muster", conf: "5", mutant: "SWAP_WITHOUT_VICTIM_STATE", want: "I5", what: "commit-and-release does not compare the victim"},
	{model: "muster", conf: "6", mutant: "LOSS_KEEPS_INCARNATION", want: "I3", what: "a journal with a loss keeps its incarnation"},
	{model: "muster", conf: "6", mutant: "REVIVED_STAYS", want: "I3", what: "a revived grant does not give way to a record", short: true},
	{model: "muster", conf: "7", mutant: "BURY_WHAT_RUNS", want: "I1", what: "tombstone at registration for what still runs"},
	{model: "muster", conf: "7", mutant: "START_BEFORE_COMMITTED", want: "I3", what: "workload starts when it is RESERVED"},
	{model: "muster", conf: "9", mutant: "COLLECT_IN_DOUBT", want: "I3", what: "ABORTED collected while a commit is in doubt", short: true},
	{model: "muster", conf: "9", mutant: "COLLECT_WITHOUT_EPOCH", want: "I3", what: "ABORTED collected by a deposed leader"},
	{model: "muster", conf: "9", mutant: "ATTEMPT_REUSED", want: "I3", what: "an attempt is used again after its record is collected"},
	{model: "muster", conf: "8", mutant: "EVICT_PEER", want: "I7", what: "a victim of the preemptor's own priority is chosen"},
	{model: "muster", conf: "10", mutant: "LIMIT_BEFORE_ELECTION", want: "I2", what: "new leader reads the limit before its election"},
	{model: "muster", conf: "10", mutant: "LIMIT_WITHOUT_EPOCH", want: "I2", what: "a lowered limit does not compare the epoch"},
	{model: "muster", conf: "10", mutant: "LIMIT_TOLD_BEFORE_KNOWN", want: "I2", what: "a lowered limit is acknowledged before it is obeyed"},
	{model: "muster", conf: "11", mutant: "NO_EPOCH_AT_AGENT", want: "I12", what: "agent obeys a leader of an older epoch"},
	{model: "muster", conf: "12", mutant: "ADOPT_STALE", want: "I5", what: "a registered agent adopts what it has read before", short: true},
	{model: "muster", conf: "12", mutant: "REPEATED_RESERVE", want: "I5", what: "a repeated Reserve counts after its tombstone is dropped"},
	{model: "muster", conf: "13", mutant: "END_WITHOUT_FENCE_COMPARE", want: "I10", what: "RELEASED does not compare that a dead node still is"},
	{model: "muster", conf: "13", mutant: "COLLECT_UNHEARD", want: "I3", what: "RELEASED collected before a dead node is back", short: true},
	{model: "muster", conf: "14", mutant: "ORPHAN_HANDED_OUT", want: "I1", what: "a device is promised while a stray process is on it"},
	{model: "muster", conf: "15", mutant: "LOSS_WITHOUT_FENCE_COMPARE", want: "I10", what: "a loss does not compare that the node still is dead"},
	{model: "muster", conf: "15", mutant: "LOSS_WITHOUT_STATE", want: "I11", what: "a loss does not compare the record"},
	{model: "muster", conf: "17", mutant: "LOSS_UNCHARGED_EARLY", want: "I2", what: "the charge of a lost member ends before the loss has landed"},
	{model: "muster", conf: "15", mutant: "MEND_WITHOUT_PARENT", want: "I18", what: "the commit of a replacement does not compare the parent's record"},
	{model: "muster", conf: "15", mutant: "COLLECT_LOST_UNHEARD", want: "I3", what: "RELEASED collected before the node of a lost member is back"},
	{model: "muster", conf: "16", mutant: "GROUP_CUT", want: "I17", what: "the commits of a group are cut into Txns of their own", short: true},
	{model: "muster", conf: "16", mutant: "GROUP_BELOW_MINIMUM", want: "I17", what: "a group commits the members alone that are there", short: true},
	{model: "restore", conf: "1", mutant: "RESTORED_WITHOUT_QUARANTINE", want: "I4", what: "an agent follows a store that went back", short: true},
	{model: "restore", conf: "1", mutant: "RETURNED_STAYS", want: "I3", what: "what came back is not ended before the agent goes on"},
	{model: "restore", conf: "1", mutant: "ADOPT_PARTIAL", want: "I3", what: "a gang is adopted of which a member is not held"},
	{model: "restore", conf: "3", mutant: "ADOPT_WITHOUT_REGISTRATION", want: "I3", what: "an adoption does not compare the registrations"},
	{model: "restore", conf: "2", mutant: "DISOWN_WITHOUT_RECORD", want: "I3", what: "a grant is released without an ABORTED record"},
	{model: "restore", conf: "4", mutant: "UNDECLARED", want: "I4", what: "a restoration that only marks show is not declared"},
	{model: "creation", mutant: "CREATE_WITHOUT_GUARD", want: "I16", what: "creation does not compare its guard absent", short: true},
	{model: "creation", mutant: "READ_BEFORE_FENCE", want: "I16", what: "name read before the guard is fenced"},
	{model: "creation", mutant: "CREATE_WITHOUT_EPOCH", want: "I15", what: "creation does not compare the epoch"},
	{model: "creation", mutant: "DEPOSED_REFUSES", want: "I16", what: "a deposed leader refuses for good"},
}

// large are the configurations of `make model-full`.
var large = []search{
	{model: "muster", conf: "1", defines: []string{"NC=3"}, what: "two gangs; 3 epochs, 2 OS crashes", bits: 25},
	{model: "muster", conf: "2", defines: []string{"CRASHES=2"}, what: "quota only; 3 epochs, 2 OS crashes", bits: 25},
	{model: "muster", conf: "5", defines: []string{"CRASHES=2"}, what: "victim, preemptor gang; 2 epochs, 2 OS crashes", bits: 25},
	{model: "muster", conf: "5", defines: []string{"NC=3"}, what: "victim, preemptor gang; 3 epochs, 1 OS crash", bits: 25},
	{model: "muster", conf: "6", defines: []string{"NC=2"}, what: "two gangs, tombstones lost; 2 epochs, 2 OS crashes", bits: 25},
	{model: "muster", conf: "6", defines: []string{"CRASHES=3"}, what: "two gangs, tombstones lost; 3 OS crashes", bits: 25},
	{model: "muster", conf: "7", defines: []string{"CRASHES=2"}, what: "two gangs, processes seen; 2 epochs, 2 faults", bits: 25},
	{model: "muster", conf: "8", defines: []string{"CRASHES=2"}, what: "victim with a rising priority; 2 epochs, 2 OS crashes", bits: 25},
	{model: "muster", conf: "9", defines: []string{"CRASHES=2"}, what: "two gangs, records collected; 2 epochs, 2 OS crashes", bits: 25},
	{model: "muster", conf: "9", defines: []string{"NC=3"}, what: "two gangs, records collected; 3 epochs, 1 OS crash", bits: 25},
	{model: "muster", conf: "10", defines: []string{"NC=3"}, what: "quota only, lowered once; 3 epochs", bits: 25},
	{model: "muster", conf: "11", defines: []string{"NC=3"}, what: "two gangs, agents compare epochs; 3 epochs, 1 OS crash", bits: 25},
	{model: "muster", conf: "12", defines: []string{"CRASHES=2"}, what: "two gangs, tombstones dropped, old reads; 2 epochs, 2 OS crashes", bits: 25},
	{model: "muster", conf: "13", defines: []string{"FENCINGS=2"}, what: "two gangs, 2 fences as dead; 2 epochs, 1 OS crash", bits: 25},
	{model: "muster", conf: "14", defines: []string{"CRASHES=2"}, what: "two gangs, stray processes; 2 epochs, 2 faults", bits: 25},
	{model: "restore", conf: "3", defines: []string{"CRASHES=2"}, what: "reconciliation while an agent does not notice; 2 OS crashes", bits: 25},
	{model: "muster", conf: "3", defines: []string{"NC=2"}, what: "victim, preemptor gang, third; 2 epochs, 1 OS crash: 12 GB", bits: 27},
}

// unwritten are the mutants whose rule no code has yet, and why.
var unwritten = map[string]string{}

// rows is what `make model` runs, or with full what `make model-full` does.
func rows(full bool) []search {
	if full {
		return proven(large)
	}
	all := proven(complete)
	for _, s := range complete {
		s.reach, s.want, s.short = true, reached, false
		s.what = "its far end: " + s.what
		all = append(all, s)
	}
	return append(all, mutants...)
}

// proven says that each must hold.
func proven(searches []search) []search {
	all := make([]search, len(searches))
	for i, s := range searches {
		s.want = holds
		all[i] = s
	}
	return all
}
