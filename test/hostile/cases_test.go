package hostile

import "time"

// level is how much the attacker has: docs/security.md.
type level string

const (
	a0 level = "A0" // reaches a port
	a1 level = "A1" // root of one enrolled host
	a2 level = "A2" // holds a token of the REST API
)

// attack is one case.
type attack struct {
	row   string // of the list of faults
	level level
	mode  string // of package evil
	// coordinators are the sizes of the clusters that it runs against.
	coordinators []int
	// short cases run in `make test`, the others in `make hostile` alone.
	short bool
	// shortOn, if set, are the sizes in `make test`.
	shortOn []int
	// lasts is how long the attack goes on in the short round; lastsLong in the
	// long one. 0 is the round's own time.
	lasts, lastsLong time.Duration
	// bait sends work to the attacker's node.
	bait bait
	// want are the answers that the attacker must get: each begins an answer that it got.
	want []string
	// may are further answers that are right, which depend on the moment; the case says on
	// what. An answer to a call of want that is neither in want nor here fails the case.
	may []string
	// never are beginnings of answers that the attacker must not get.
	never []string
	// said are texts of refusals: each is in an answer.
	said []string
	// shown is a text that the attacker's node must show to operators.
	shown string
	// keeps are bytes that a coordinator keeps by design of what it accepted.
	keeps int64
	// spoils: the cluster ends after the case. It holds what the attacker has stored, by
	// which the memory of a later case would be measured.
	spoils bool
	// slowest is the p99 from which the honest client's is compared, where it is
	// not noticeable: the attack and the client share the machine's two cores.
	slowest time.Duration
	// during runs beside the attack, after check after it.
	during, after func(*scene) error
}

type bait int

const (
	noBait   bait = iota
	oneBait       // an allocation that may run on the attacker's node alone
	gangBait      // a gang that needs every node
)

// The sizes of clusters.
var (
	one   = []int{1}
	three = []int{3}
	both  = []int{1, 3}
)

// violation is the reason that a lying node is cordoned for.
const violation = "ProtocolViolation"

// cases are all attacks, by a description. A message above MaxMessage is ResourceExhausted;
// one that breaks the limit of bytes of its own type is refused while it is decoded, which
// gRPC calls Internal; one with too many entries is InvalidArgument.
var cases = map[string]attack{
	// S1: votes and registrations that nobody may believe.
	"a Yes without members": {
		row: "S1", level: a1, mode: "vote-without-members", coordinators: both, short: true, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a Yes for a member of another index": {
		row: "S1", level: a1, mode: "vote-other-index", coordinators: one, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a Yes for member -1": {
		row: "S1", level: a1, mode: "vote-negative-index", coordinators: one, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a Yes that names a member twice": {
		row: "S1", level: a1, mode: "vote-twice-a-member", coordinators: one, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a Yes with less than was asked": {
		row: "S1", level: a1, mode: "vote-less", coordinators: one, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a Yes with more than was asked": {
		row: "S1", level: a1, mode: "vote-more", coordinators: three, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a Yes with 2^63-1 bytes of memory": {
		row: "S1", level: a1, mode: "vote-huge-memory", coordinators: one, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a Yes with a GPU that the node does not have": {
		row: "S1", level: a1, mode: "vote-foreign-gpu", coordinators: one, short: true, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a Yes with a GPU far outside the inventory": {
		row: "S1", level: a1, mode: "vote-gpu-outside", coordinators: three, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a Yes with a million CPUs": {
		row: "S1", level: a1, mode: "vote-a-million-cpus", coordinators: one, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a Yes under a revision of the future": {
		row: "S1", level: a1, mode: "vote-of-the-future", coordinators: one, bait: oneBait, want: []string{"vote: sent"},
	},
	"a Yes under another incarnation": {
		row: "S1", level: a1, mode: "vote-of-another-life", coordinators: one, bait: oneBait, want: []string{"vote: sent"}, shown: violation,
	},
	"a registration whose memory overflows": {
		row: "S1", level: a1, mode: "register-overflow", coordinators: both, short: true, shortOn: one, want: []string{"false registration: InvalidArgument"},
	},
	"a registration without a host": {
		row: "S1", level: a1, mode: "register-no-host", coordinators: one, want: []string{"false registration: InvalidArgument"},
	},
	"a registration of 100,000 CPUs": {
		row: "S1", level: a1, mode: "register-a-million-cpus", coordinators: one,
		want: []string{"false registration: Internal"},
	},

	// S2: a peer without a certificate takes memory and connections. A server cuts the
	// connection of such a peer after 96 KiB or 16 refusals; calls that are in flight then
	// end as Unavailable, and their number depends on the moment.
	"200 streams of 15 MB at a coordinator": {
		row: "S2", level: a0, mode: "messages-at-coordinator", coordinators: both, short: true,
		want: []string{"message: Unauthenticated"}, may: []string{"message: Unavailable"},
	},
	"200 streams of 15 MB at the enrollment": {
		row: "S2", level: a0, mode: "messages-at-enrollment", coordinators: one,
		want: []string{"message: ResourceExhausted"}, may: []string{"message: Unavailable"},
	},
	"200 streams of 7 MB at an agent": {
		row: "S2", level: a0, mode: "messages-at-agent", coordinators: one, short: true,
		want: []string{"message: Unauthenticated"}, may: []string{"message: Unavailable"},
	},
	"20,000 streams on one connection to a coordinator": {
		row: "S2", level: a0, mode: "streams-at-coordinator", coordinators: both, short: true, shortOn: one, want: []string{streamsLimited},
	},
	"20,000 streams on one connection to an agent": {
		row: "S2", level: a0, mode: "streams-at-agent", coordinators: one, want: []string{streamsLimited},
	},
	"20,000 streams on one connection to the REST API": {
		row: "S2", level: a0, mode: "streams-at-rest", coordinators: one, want: []string{streamsLimited},
	},
	"20,000 streams reset at once at a coordinator": {
		row: "S2", level: a0, mode: "reset-at-coordinator", coordinators: one, want: []string{streamsLimited},
	},
	"20,000 streams reset at once at the REST API": {
		row: "S2", level: a0, mode: "reset-at-rest", coordinators: one, want: []string{streamsLimited},
	},
	"headers without an end to a coordinator": {
		row: "S2", level: a0, mode: "continuation-at-coordinator", coordinators: one, want: []string{"connection: closed by the server"},
	},
	"headers without an end to the REST API": {
		row: "S2", level: a0, mode: "continuation-at-rest", coordinators: one, want: []string{"connection: closed by the server"},
	},
	// The limits on idle connections are longer than a short round.
	"300 connections without a handshake": {
		row: "S2", level: a0, mode: "half-handshakes", coordinators: one, lasts: 12 * time.Second, lastsLong: 15 * time.Second,
		want: []string{"connections: none held", "connections: some closed"},
	},
	"300 connections that are idle after their handshake": {
		row: "S2", level: a0, mode: "idle-connections", coordinators: one, lasts: 25 * time.Second, lastsLong: 40 * time.Second, want: []string{"connections: none held", "connections: some closed"},
	},
	"300 requests whose headers never end": {
		row: "S2", level: a0, mode: "slow-headers", coordinators: one, lasts: 15 * time.Second, lastsLong: 30 * time.Second, want: []string{"connections: none held", "connections: some closed"},
	},
	"2,000 connections": {
		row: "S2", level: a0, mode: "many-connections", coordinators: both, lastsLong: 15 * time.Second, want: []string{"connections: some closed"}, may: []string{"connections: none held"},
	},
	// The server announces its bound of headers, and the attacker's library keeps to it.
	"calls with 1 MB of metadata": {
		row: "S2", level: a0, mode: "huge-metadata", coordinators: one, want: []string{"call: Internal"},
	},

	// S3: one host fills the store.
	"heartbeats with conditions of 9 MB": {
		row: "S3", level: a1, mode: "conditions-9MB", coordinators: both, short: true, shortOn: one,
		want: []string{"Heartbeat: ResourceExhausted"}, after: nodeIsSmall,
	},
	"heartbeats with 5,000 conditions": {
		row: "S3", level: a1, mode: "conditions-many", coordinators: one,
		want: []string{"Heartbeat: InvalidArgument"}, after: nodeIsSmall,
	},
	"conditions that change with every heartbeat": {
		row: "S3", level: a1, mode: "conditions-changing", coordinators: one, during: countStatusWrites,
	},
	"fences of transactions with names of 1 MB": {
		row: "S3", level: a1, mode: "fences-1MB", coordinators: one,
		want: []string{"Resolve: Internal"},
	},
	// A fence cannot be refused for a unit that is nowhere: a creation that fits at
	// once commits unit and transaction together. So a budget bounds the records.
	"fences of transactions that never were": {
		row: "S3", level: a1, mode: "fences-invented", coordinators: both, short: true, shortOn: one, want: []string{"Resolve: OK", "Resolve: a record was made", "Resolve: ResourceExhausted"}, after: fencesAreBounded,
	},
	"a registration with a label of 9 MB": {
		row: "S3", level: a1, mode: "register-labels-9MB", coordinators: one,
		want: []string{"false registration: ResourceExhausted"},
	},
	"a registration with 10,000 labels": {
		row: "S3", level: a1, mode: "register-labels-many", coordinators: one,
		want: []string{"false registration: InvalidArgument"},
	},
	"a registration with a version of 1 MB": {
		row: "S3", level: a1, mode: "register-version-1MB", coordinators: one,
		want: []string{"false registration: Internal"},
	},

	// S4: gossip names another node's address.
	"a ring member that says it is an honest node": {
		row: "S4", level: a1, mode: "forge-tag", coordinators: both, short: true, lasts: 4 * time.Second, never: []string{"dialled by the leader"}, during: honestStaysReady,
	},
	"a ring member that invents a thousand nodes": {
		row: "S4", level: a1, mode: "invent-ids", coordinators: one, want: []string{"tags: changed"}, never: []string{"dialled by the leader"}, during: honestStaysReady,
	},
	"a registration with the address of an honest agent": {
		row: "S4", level: a1, mode: "register-foreign-address", coordinators: one, during: honestStaysReady,
	},

	// S5: a certificate that was replaced.
	"a certificate that was replaced": {
		row: "S5", level: a1, mode: "outlive-certificate", coordinators: both, short: true, shortOn: one, lasts: 3 * time.Second, during: replaceCertificate,
		want: []string{"last open connection: PermissionDenied", "last fresh connection: PermissionDenied", "last heartbeat: PermissionDenied", "last renewal: PermissionDenied"},
	},
	"a node that was banned": {
		row: "S5", level: a1, mode: "outlive-certificate", coordinators: both, short: true, shortOn: three, lasts: 3 * time.Second, during: banNode,
		want: []string{"last open connection: PermissionDenied", "last fresh connection: PermissionDenied", "last heartbeat: PermissionDenied", "last renewal: PermissionDenied"},
	},

	// S6: an agent that does not do its part. The honest client's work may be
	// placed there first, and has to run all the same.
	"an agent that refuses everything": {
		row: "S6", level: a1, mode: "refuse-always", coordinators: both, short: true, shortOn: three, want: []string{"Reserve: refused"}, after: avoided,
	},
	"an agent that answers nothing": {
		row: "S6", level: a1, mode: "hang-always", coordinators: both, short: true, lasts: 5 * time.Second, want: []string{"Reserve: not answered"}, after: avoided,
	},
	"an agent that answers too late": {
		row: "S6", level: a1, mode: "answer-late", coordinators: one, lastsLong: 30 * time.Second, want: []string{"vote: sent late"}, after: avoided,
	},
	"an agent that answers everything three times": {
		row: "S6", level: a1, mode: "answer-twice", coordinators: one, bait: oneBait, want: []string{"reply: sent twice"},
	},
	"an agent that answers about another transaction": {
		row: "S6", level: a1, mode: "answer-wrong-tx", coordinators: one, want: []string{"reply: sent"}, after: avoided,
	},
	"an agent that says Yes, No, Freed and Yes": {
		row: "S6", level: a1, mode: "yes-then-no", coordinators: one, bait: oneBait, want: []string{"vote: sent"},
	},

	// S7: one stream starves the leader.
	"occupancies of 10,000 grants": {
		row: "S7", level: a1, mode: "flood-occupancies", coordinators: both, short: true, want: []string{"message: "}, shown: violation,
	},
	"reasons of 60 MB": {
		row: "S7", level: a1, mode: "flood-reasons", coordinators: one, want: []string{"message: "}, shown: violation,
	},
	"quarantine texts of 3 MB": {
		row: "S7", level: a1, mode: "flood-quarantine-text", coordinators: one, want: []string{"message: "}, shown: violation,
	},
	"empty health messages without end": {
		row: "S7", level: a1, mode: "flood-health", coordinators: both, short: true, shortOn: one, want: []string{"message: "},
	},
	"answers about unknown transactions without end": {
		row: "S7", level: a1, mode: "flood-unknown-votes", coordinators: one, want: []string{"message: "},
	},

	// S8: gossip keys.
	"a ring member that changes the gossip keys": {
		row: "S8", level: a1, mode: "change-keys", coordinators: both, short: true, lasts: 2 * time.Second, after: keysAreKept,
	},

	// S9: hosts that label and size themselves.
	"a host that takes the name of another": {
		row: "S9", level: a1, mode: "register-hostname", coordinators: one, short: true, after: hostnameIsKept,
	},
	"a host that gives itself reserved labels": {
		row: "S9", level: a1, mode: "register-reserved-labels", coordinators: one, after: hostnameIsKept,
	},
	"a host that grows 64 times": {row: "S9", level: a1, mode: "register-growth", coordinators: one},
	"a host that changes its GPUs' model": {
		row: "S9", level: a1, mode: "register-other-model", coordinators: one,
	},

	// S10: a gang member's vote speaks for the others.
	"a vote for all members of a gang": {
		row: "S10", level: a1, mode: "vote-for-all-members", coordinators: both, short: true, shortOn: one, bait: gangBait, want: []string{"vote: sent"}, shown: violation, after: othersAreShown,
	},

	// S11: a tenant takes memory and the leader's time.
	// 5,000 jobs are less than a namespace may have; each takes 20 KiB.
	"jobs that never fit, without end": {
		row: "S11", level: a2, mode: "queue-flood", coordinators: both, lastsLong: time.Minute, keeps: 5_000 * 20 << 10, want: []string{"POST jobs: 201"}, may: []string{"POST jobs: 429"}, never: []string{"POST jobs: 5"},
	},
	"32 clients that list all the time": {
		row: "S11", level: a2, mode: "list-storm", coordinators: one, slowest: 150 * time.Millisecond, want: []string{"GET jobs: 200"}, may: []string{"GET jobs: 429"}, never: []string{"GET jobs: 5"},
	},
	"100 lists that nobody reads": {
		row: "S11", level: a2, mode: "stalled-lists", coordinators: one,
	},
	"200 watches that nobody reads": {
		row: "S11", level: a2, mode: "stalled-watches", coordinators: one,
	},
	"bodies of 1 MB that never come": {
		row: "S11", level: a2, mode: "slow-bodies", coordinators: one,
	},
	"an object with 60,000 labels": {
		row: "S11", level: a2, mode: "labels-60000", coordinators: one, short: true, want: []string{"POST: 422"}, may: []string{"POST: 429"}, never: []string{"POST: 2"},
	},
	"an object with 30,000 selectors": {
		row: "S11", level: a2, mode: "selector-60000", coordinators: one, want: []string{"POST: 422"}, may: []string{"POST: 429"}, never: []string{"POST: 2"},
	},
	"a body that unpacks to 200 MB": {
		row: "S11", level: a2, mode: "gzip-bomb", coordinators: one, want: []string{"POST: 415"}, never: []string{"POST: 2"},
	},
	"a body of 64 MB": {
		row: "S11", level: a2, mode: "huge-body", coordinators: one, want: []string{"POST: 413"}, never: []string{"POST: 2"},
	},
	"2,000 headers": {
		row: "S11", level: a2, mode: "huge-headers", coordinators: one, want: []string{"POST: 431"}, never: []string{"POST: 2"},
	},
	"a document of 100,000 levels": {
		row: "S11", level: a2, mode: "deep-json", coordinators: one, want: []string{"POST: 400"}, may: []string{"POST: 429"}, never: []string{"POST: 2"},
	},

	// S13: what others may read, and what reaches an operator's terminal.
	"a ring member that reads the tenants' queue": {
		row: "S13", level: a1, mode: "read-queue", coordinators: one, short: true, during: waitInQueue, after: queueIsPrivate,
	},
	"a condition with terminal escapes": {
		row: "S13", level: a1, mode: "condition-escapes", coordinators: one, short: true, after: noEscapes,
	},
	"a version with terminal escapes": {
		row: "S13", level: a1, mode: "register-escapes", coordinators: one, after: noEscapes,
	},
	"a usage of 2^62": {
		row: "S13", level: a1, mode: "usage-2-62", coordinators: one, short: true, after: usageIsPlausible,
	},
	"bootstrap tokens guessed at speed": {
		row: "S13", level: a0, mode: "failed-enrollments", coordinators: one, short: true,
		// The server cuts the connection after 16 refusals, amid calls.
		want: []string{"Enroll: Unauthenticated", "Enroll: ResourceExhausted"}, may: []string{"Enroll: Unavailable"}, after: enrollmentsLeaveATrace,
	},
	"an object's name with terminal escapes": {
		row: "S13", level: a2, mode: "name-escapes", coordinators: one, want: []string{"POST: 422"}, never: []string{"POST: 2"},
	},

	// What held before and must stay.
	"a node that leads other nodes": {
		row: "held", level: a1, mode: "node-leads", coordinators: one, short: true, want: []string{"Session: PermissionDenied"}, never: []string{"Session: obeyed"},
	},
	"a coordinator of another cluster": {
		row: "held", level: a0, mode: "foreign-coordinator-leads", coordinators: one,
		want: []string{"Session: Unavailable"}, // the handshake fails
	},
	"a leader that was deposed": {
		row: "held", level: a0, mode: "deposed-leader", coordinators: both, short: true, shortOn: three, during: nothing,
		want: []string{"Session: FailedPrecondition"},
	},
	"a node that evicts on other nodes": {
		row: "held", level: a1, mode: "node-evicts", coordinators: one, want: []string{"EvictAllocation: PermissionDenied"}, never: []string{"EvictAllocation: OK", "GetResourceSnapshot: OK"},
	},
	"a node that speaks for another": {
		row: "held", level: a1, mode: "speak-for-another", coordinators: one, short: true,
		want:  []string{"ReadNode for another: PermissionDenied", "Resolve for another: PermissionDenied", "Evict for another: PermissionDenied", "Register for another: PermissionDenied"},
		never: []string{"ReadNode for another: OK", "Resolve for another: OK", "Evict for another: OK", "Register for another: OK"},
	},
	"a registration of another node": {
		row: "held", level: a1, mode: "register-for-another", coordinators: one, want: []string{"false registration: PermissionDenied"},
	},
	"a heartbeat of another node": {
		row: "held", level: a1, mode: "heartbeat-for-another", coordinators: one, want: []string{"Heartbeat: PermissionDenied"}, never: []string{"Heartbeat: OK"},
	},
	"a coordinator that floods agents": {
		row: "held", level: a1, mode: "coordinator-floods", coordinators: one, never: []string{"Session: OK"},
	},
}

// streamsLimited is the announcement of a server that a connection has at most 250 streams
// at a time.
const streamsLimited = "settings: streams are limited"

// rows are the rows of the groups S and T that this package has to cover. S12 is the
// tenants' tokens themselves: test/rights and test/tenancy.
var rows = []string{
	"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S13", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11",
}
